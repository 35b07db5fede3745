"""What an installed program consists of.

`placement` and `profiling` are packages to import. All else has names that others use too
(`pages`, `studio`, `assets`), so it lies in a folder `placement_studio`, as it lies here, and is on
the path of the studio's server alone (placement/files/program.py).
"""

import atexit
import shutil
import tempfile

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

# Files of an earlier build would be installed, too, and what lies in a folder is what it offers.
BUILT = tempfile.mkdtemp(prefix="placement-studio-build-")
atexit.register(shutil.rmtree, BUILT, ignore_errors=True)


class WithoutThis(build_py):
    """Builds all modules but this one, which lies beside app.py."""

    def find_package_modules(self, package: str, folder: str) -> list[tuple[str, str, str]]:
        found = super().find_package_modules(package, folder)
        return [module for module in found if module[1] != "setup"]


setup(
    cmdclass={"build_py": WithoutThis},
    packages=[
        "placement_studio",
        *find_packages(include=["placement", "placement.*", "profiling", "profiling.*"]),
    ],
    package_dir={"placement_studio": "."},
    package_data={
        "placement_studio": [
            ".streamlit/config.toml",
            "assets/**",
            "pages/**/*.py",
            "studio/**/*.py",
        ]
    },
    options={"build": {"build_base": BUILT}, "egg_info": {"egg_base": BUILT}},
)
