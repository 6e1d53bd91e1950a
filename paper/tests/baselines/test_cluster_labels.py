import itertools

import numpy as np

from otprop_paper.baselines._cluster_labels import match_clusters_to_classes


def test_the_map_is_the_best_of_all_permutations():
    rng = np.random.default_rng(0)
    for _ in range(20):
        clusters, codes = rng.integers(0, 4, 40), rng.integers(-1, 4, 40)
        given = codes >= 0
        found = match_clusters_to_classes(clusters, codes, 4, 4)
        assert sorted(found) == [0, 1, 2, 3]
        best = max(np.sum(np.array(p)[clusters[given]] == codes[given]) for p in itertools.permutations(range(4)))
        assert np.sum(found[clusters[given]] == codes[given]) == best


def test_unlabelled_rows_have_no_say():
    clusters = np.array([0, 1, *[0] * 50])
    codes = np.array([1, 0, *[-1] * 50])
    np.testing.assert_array_equal(match_clusters_to_classes(clusters, codes, 2, 2), [1, 0])
