"""Models of format 1 and 2 (version 0.1.0), which named classes by their paths.

Each line: the path in the file, the id of the class now, and attributes that have other names now.
"""

from __future__ import annotations

from typing import Any

LAST_FORMAT = 2

CLASSES: dict[str, tuple[str, dict[str, str]]] = {
    "otprop._otp.OTP": ("otp", {"_answers": "_predictor"}),
    "otprop._class_level.ClassAnswers": (
        "otp.class_predictor",
        {
            "_calibration": "calibration",
            "_distributions": "distributions",
            "_evidence": "evidence",
            "_features": "has_features",
            "_given": "labeled",
            "_index": "index",
            "_known": "known",
            "_n_query": "n_query",
            "_plan": "plan",
            "_precomputed": "precomputed",
            "_prior": "prior",
            "_sparse": "sparse",
            "_temperature": "temperature",
            "_zero_is_same": "zero_distance_is_equal",
        },
    ),
    "otprop._replay.Replay": ("otp.row_predictor", {"given": "labeled"}),
    "otprop._confidence.Calibration": ("otp.calibration", {}),
    "otprop._rounds.Round": ("otp.round", {}),
    "otprop._propagation.Snapshot": ("otp.snapshot", {}),
    "otprop.evidence.combined.Evidence": ("evidence", {"moving": "iterative", "hidden": "held_out"}),
    "otprop.evidence.combined.Contribution": ("evidence.contribution", {}),
    "otprop.evidence.diffusion.DiffusionSource": ("evidence.diffusion", {}),
    "otprop.evidence.diffusion.Setting": ("evidence.diffusion_setting", {}),
    "otprop.evidence.hidden.Hidden": ("evidence.held_out", {}),
    "otprop.evidence.nearness.NearnessSource": ("evidence.nearness", {"_pairs": "_cost", "_sources": "_labeled"}),
    "otprop.evidence.classifier.Features": ("evidence.column_scaler", {}),
    "otprop.evidence.classifier.ForestSource": ("evidence.forest", {"_features": "_scaler"}),
    "otprop.evidence.classifier.ClassifierSource": ("evidence.classifier", {}),
    "otprop.evidence.classifier.LinearSource": ("evidence.linear", {}),
    "otprop.evidence.classifier._Shares": ("evidence.class_shares", {}),
    "otprop.evidence.classifier._ScaledLogistic": ("evidence.scaled_logistic", {"_features": "_scaler"}),
    "otprop.geometry.pairs.MetricPairs": ("geometry.metric_cost", {}),
    "otprop.geometry.pairs.MatrixPairs": ("geometry.matrix_cost", {}),
    "otprop.geometry.euclidean.EuclideanPairs": (
        "geometry.euclidean_cost",
        {"_first": "_scale", "_second": "_centered_scale"},
    ),
    "otprop.geometry.measures.Tree": ("geometry.tree_search", {}),
    "otprop.geometry.measures.Measured": (
        "geometry.metric_search",
        {"lines": "block_rows", "uses_cells": "partitionable"},
    ),
    "otprop.geometry.measures.Vectors": ("geometry.dense_search", {"lines": "block_rows", "_bases": "_standardized"}),
    "otprop.geometry.measures.SparseVectors": (
        "geometry.sparse_search",
        {"lines": "block_rows", "_bases": "_standardized"},
    ),
    "otprop.geometry.diffusion.DiffusionGraph": ("geometry.diffusion_graph", {}),
    "otprop.geometry.cells.View": ("geometry.projection", {}),
    "otprop.geometry.cells.Cells": ("geometry.cells", {}),
    "otprop.geometry.cells.SearchPlan": (
        "geometry.cell_search",
        {"measure": "exact", "view": "projection", "n_probed": "n_probes"},
    ),
    "otprop.geometry.neighbors.NeighborIndex": (
        "geometry.neighbor_index",
        {"_copies": "_duplicates", "_measure": "_exact", "_plans": "_approximate"},
    ),
    "otprop.geometry.identical.GivenRows": ("geometry.labeled_rows", {}),
    "otprop.geometry.rows.UnitRows": ("geometry.unit_rows", {}),
    "otprop.geometry.rows.Copies": ("geometry.duplicate_rows", {}),
    "otprop.geometry.jobs.Jobs": ("geometry.jobs", {}),
    "otprop.transport.class_level.ClassTransport": ("transport.class_plan", {}),
    "otprop.baselines._rows.Frame": ("baselines.frame", {}),
    "otprop.baselines.cnmf.CNMF": ("baselines.cnmf", {}),
    "otprop.baselines.lnp.LNP": ("baselines.lnp", {}),
    "otprop.baselines.lp.LabelPropagation": ("baselines.lp", {}),
    "otprop.baselines.ls.LabelSpreading": ("baselines.ls", {}),
    "otprop.baselines.nearest.KernelVote": ("baselines.vote", {}),
    "otprop.baselines.nearest.NearestNeighbor": ("baselines.nearest", {}),
    "otprop.baselines.plcc.PLCC": ("baselines.plcc", {}),
    "otprop.baselines.supervised.SelfTraining": ("baselines.self_training", {}),
    "otprop.baselines.supervised.Supervised": ("baselines.supervised", {}),
    "otprop.labelling.blocks.EmbeddingEncoder": ("table.embedding", {}),
    "otprop.labelling.blocks.TextEncoder": ("table.text", {}),
    "otprop.labelling.columns.Block": ("table.block", {}),
    "otprop.labelling.columns.BooleanEncoder": ("table.boolean", {}),
    "otprop.labelling.columns.CategoryEncoder": ("table.category", {}),
    "otprop.labelling.columns.DateEncoder": ("table.date", {}),
    "otprop.labelling.columns.NumberEncoder": ("table.number", {}),
    "otprop.labelling.columns.TimeEncoder": ("table.time", {}),
    "otprop.labelling.features.ColumnUse": ("table.column_use", {}),
    "otprop.labelling.features.Features": ("table.features", {}),
    "otprop.labelling.features._Used": ("table.used_column", {}),
    "sklearn.ensemble._forest.ExtraTreesClassifier": ("sklearn.extra_trees", {}),
    "sklearn.linear_model._logistic.LogisticRegression": ("sklearn.logistic_regression", {}),
    "sklearn.pipeline.Pipeline": ("sklearn.pipeline", {}),
    "sklearn.preprocessing._data.StandardScaler": ("sklearn.standard_scaler", {}),
    "sklearn.semi_supervised._self_training.SelfTrainingClassifier": ("sklearn.self_training", {}),
    "sklearn.tree._classes.ExtraTreeClassifier": ("sklearn.extra_tree", {}),
}

DEFAULTS: dict[str, dict[str, Any]] = {  # by id: attributes that those models do not have
    "otp.class_predictor": {"unseen": 0.0},
    "table.text": {"unit": False, "more_words": [], "more_idf": None},
}
UNUSED_METHODS = {("otprop.geometry.measures.Vectors", "enter")}  # bound methods that no class needs any more
