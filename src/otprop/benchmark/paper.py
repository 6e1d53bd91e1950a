"""The 336 figures of the paper's tables II and III, as printed."""

from __future__ import annotations

METHODS = ("LP", "LS", "LNP", "CNMF", "PLCC", "OTP")

# data set, percentage, then the methods in that order
_NMI = """
iris 5 0.7302 0.7354 0.6729 0.4561 0.5187 0.7372
iris 15 0.8412 0.8442 0.7534 0.5274 0.5835 0.8447
iris 25 0.8584 0.8621 0.8269 0.5717 0.6489 0.8667
iris 35 0.8621 0.8649 0.8314 0.6198 0.7067 0.8852
heart 5 0.0991 0.1037 0.0721 0.0439 0.0828 0.1394
heart 15 0.1519 0.1575 0.1091 0.1163 0.1390 0.2181
heart 25 0.2291 0.2472 0.1432 0.1858 0.2021 0.3683
heart 35 0.3313 0.3546 0.2718 0.3087 0.3191 0.4374
ionosphere 5 0.2837 0.2895 0.2510 0.1329 0.2157 0.3786
ionosphere 15 0.3502 0.3535 0.3256 0.2278 0.3007 0.4676
ionosphere 25 0.3848 0.3911 0.3572 0.2605 0.3356 0.5000
ionosphere 35 0.3972 0.4014 0.3725 0.2892 0.3529 0.5383
dermatology 5 0.7927 0.8054 0.7785 0.5197 0.6665 0.8159
dermatology 15 0.8770 0.8779 0.8349 0.5531 0.6991 0.8935
dermatology 25 0.8932 0.8932 0.8692 0.6238 0.7201 0.9033
dermatology 35 0.9128 0.9128 0.8959 0.6703 0.7732 0.9164
waveform 5 0.4102 0.4184 0.3981 0.1829 0.2761 0.4493
waveform 15 0.4950 0.5009 0.4628 0.2453 0.3191 0.5256
waveform 25 0.5124 0.5192 0.4763 0.2619 0.3307 0.5319
waveform 35 0.5192 0.5229 0.4807 0.2792 0.3391 0.5421
digits 5 0.8319 0.8319 0.7850 0.1471 0.6798 0.8571
digits 15 0.9150 0.9150 0.8891 0.1617 0.7412 0.9290
digits 25 0.9443 0.9443 0.9268 0.2435 0.7801 0.9489
digits 35 0.9570 0.9570 0.9318 0.3174 0.7956 0.9607
mnist10k 5 0.7429 0.7436 0.7005 0.1037 0.5616 0.7581
mnist10k 15 0.8019 0.8028 0.7759 0.2452 0.6329 0.8177
mnist10k 25 0.8389 0.8367 0.7931 0.2912 0.6506 0.8442
mnist10k 35 0.8542 0.8599 0.8136 0.3201 0.6711 0.8730
"""

_ARI = """
iris 5 0.7481 0.7428 0.7062 0.4165 0.4725 0.7582
iris 15 0.8453 0.8492 0.7861 0.4986 0.5403 0.8621
iris 25 0.8680 0.8704 0.8321 0.5215 0.6029 0.8884
iris 35 0.8754 0.8783 0.8424 0.5791 0.6471 0.9027
heart 5 0.1385 0.1120 0.0892 0.0938 0.1108 0.1694
heart 15 0.2110 0.2190 0.1562 0.1492 0.1979 0.2475
heart 25 0.3176 0.2955 0.2283 0.2201 0.2593 0.4162
heart 35 0.4163 0.4464 0.3688 0.3350 0.3728 0.5030
ionosphere 5 0.3081 0.3124 0.2828 0.1625 0.2752 0.5089
ionosphere 15 0.4221 0.4248 0.3998 0.2541 0.3491 0.5723
ionosphere 25 0.4606 0.4673 0.4324 0.3005 0.3491 0.5927
ionosphere 35 0.4650 0.4702 0.4418 0.3217 0.3902 0.6281
dermatology 5 0.7834 0.8121 0.7808 0.5360 0.6826 0.8289
dermatology 15 0.8807 0.8813 0.8438 0.5725 0.7174 0.8996
dermatology 25 0.8972 0.8972 0.8751 0.6401 0.7486 0.9093
dermatology 35 0.9146 0.9146 0.9007 0.6935 0.7910 0.9218
waveform 5 0.4728 0.4771 0.4494 0.2201 0.3025 0.5084
waveform 15 0.5639 0.5678 0.5163 0.2819 0.3486 0.5945
waveform 25 0.5819 0.5864 0.5279 0.3059 0.3618 0.6031
waveform 35 0.5870 0.5880 0.5342 0.3242 0.3745 0.6182
digits 5 0.8290 0.8290 0.7964 0.0982 0.6169 0.8684
digits 15 0.9126 0.9127 0.8993 0.1174 0.6931 0.9306
digits 25 0.9432 0.9432 0.9287 0.1834 0.7306 0.9508
digits 35 0.9567 0.9567 0.9407 0.2587 0.7294 0.9621
mnist10k 5 0.7510 0.7523 0.7106 0.0539 0.4518 0.7763
mnist10k 15 0.7930 0.7944 0.7697 0.0970 0.5692 0.8393
mnist10k 25 0.8487 0.8466 0.8152 0.1193 0.5927 0.8685
mnist10k 35 0.8721 0.8777 0.8438 0.1452 0.6201 0.8935
"""


def _read(text: str) -> dict[tuple[str, float, str], float]:
    out = {}
    for line in text.strip().splitlines():
        dataset, percent, *values = line.split()
        for method, value in zip(METHODS, values, strict=True):
            out[dataset, float(percent), method] = float(value)
    return out


_TABLES = {"nmi": _read(_NMI), "ari": _read(_ARI)}


def printed(metric: str, dataset: str, percent: float, method: str | None) -> float | None:
    """The paper's figure for a cell, None where it has none.

    Parameters
    ----------
    metric : {"nmi", "ari"}
    dataset : str
    percent : float
    method : str or None, a column of the paper's tables

    Returns
    -------
    float or None

    Examples
    --------
    >>> from otprop.benchmark.paper import printed
    >>> printed("nmi", "iris", 5, "OTP")
    0.7372
    """
    return None if method is None else _TABLES[metric].get((dataset, float(percent), method))
