"""Settings of the site; `make docs` builds it. Nothing is fetched, neither in building nor in reading."""

from __future__ import annotations

import os
import sys
import warnings
from importlib.util import find_spec
from pathlib import Path

import matplotlib as mpl

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))
os.environ.setdefault("OMP_NUM_THREADS", "1")
mpl.use("agg")

import otprop  # noqa: E402

project, author, release, version = "otprop", "the otprop contributors", otprop.__version__, otprop.__version__
project_copyright = author
templates_path = ["_templates"]
extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "mathml",
    "commands",
]
default_role = "code"  # names in docstrings stand in single backquotes
exclude_patterns = ["_build", "gallery/*.ipynb", "gallery/*.py", "gallery/*.md5"]
suppress_warnings = ["config.cache"]  # sphinx-gallery's settings hold classes

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
html_math_renderer = "mathml"

autosummary_generate = True
autodoc_typehints = "none"  # the docstrings say it
autodoc_member_order = "bysource"
numpydoc_class_members_toctree = False
numpydoc_show_class_members = False
numpydoc_show_inherited_class_members = False
numpydoc_xref_param_type = False

NEEDED = {"plot_16_dask_array": ("otprop.dask", "distributed"), "plot_17_network": ("otprop.deep", "torch")}
skipped = [script for script, packages in NEEDED.items() if not all(map(find_spec, packages))]
for script in skipped:
    sys.stderr.write(f"skipped in the gallery: {script}.py; it needs {' and '.join(NEEDED[script])}\n")

sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "filename_pattern": "/plot_",
    "ignore_pattern": "|".join([r"__init__\.py", *skipped]),
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "write_computation_times": False,  # its page loads scripts from elsewhere
    "show_signature": False,
    "plot_gallery": True,
    "abort_on_example_error": False,
    "only_warn_on_example_error": False,
    "min_reported_time": 3,
    "matplotlib_animations": False,
    "image_scrapers": ("matplotlib",),
    "default_thumb_file": None,
    "backreferences_dir": None,
    "copyfile_regex": r".*\.csv",
}
warnings.filterwarnings("ignore", category=UserWarning, message=".*non-interactive.*")

html_theme = "pydata_sphinx_theme"
html_title = "otprop"
html_static_path = ["_static"]
html_logo = "_static/logo.svg"
html_favicon = "_static/favicon.svg"
html_css_files = ["site.css"]
html_extra_path = ["llms.txt"]
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_show_search_summary = True  # the page of results fetches the pages found; not from a disk, where browsers refuse
html_theme_options = {
    "logo": {"text": "otprop", "image_light": "_static/logo.svg", "image_dark": "_static/logo.svg", "alt_text": ""},
    "navbar_start": ["navbar-logo", "site-version"],
    "navbar_end": ["theme-switcher"],
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "show_prev_next": True,
    "secondary_sidebar_items": {"**": ["page-toc"], "index": []},
    "footer_start": ["copyright"],
    "footer_end": [],
    "navigation_with_keys": False,
    "show_toc_level": 2,
}
html_context = {"default_mode": "auto"}
html_sidebars = {"index": []}
