"""What a release consists of besides the package: changelog, workflows, recipe, image, metadata."""

import importlib
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped] # it comes without types
from jinja2 import StrictUndefined, Template

from captime import __version__

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def script(monkeypatch: pytest.MonkeyPatch, name: str) -> Any:
    """A script of packaging/, as a module."""
    monkeypatch.syspath_prepend(str(ROOT / "packaging"))
    monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module(name)


def test_fragments_are_collected_under_the_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Grouped by kind, in the order of their names, above the older versions; twice is refused."""
    changelog = script(monkeypatch, "changelog")
    (tmp_path / "b.added.md").write_text("Second.\n", encoding="utf-8")
    (tmp_path / "a.added.md").write_text("First, see\n[a page](../docs/a.md).\n", encoding="utf-8")
    (tmp_path / "c.fixed.md").write_text("Third.\n", encoding="utf-8")
    before = f"# Changelog\n\n{changelog.UNRELEASED}{changelog.NOTHING}\n## 0.1.0 (2026-01-01)\n\nOld.\n"
    after = changelog.collected(before, tmp_path, "0.9.0", "2026-02-03")
    added = "### Added\n\n- First, see [a page](docs/a.md).\n- Second.\n\n### Fixed\n\n- Third.\n"
    assert after == (
        f"# Changelog\n\n{changelog.UNRELEASED}{changelog.NOTHING}\n## 0.9.0 (2026-02-03)\n\n{added}"
        "\n## 0.1.0 (2026-01-01)\n\nOld.\n"
    )
    with pytest.raises(ValueError, match="already"):
        changelog.collected(after, tmp_path, "0.9.0", "2026-02-03")
    with pytest.raises(ValueError, match="nothing to collect"):
        changelog.collected(before, tmp_path / "none", "0.9.0", "2026-02-03")


def test_a_tag_of_another_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The recipe and the citation carry the version of the package."""
    check = script(monkeypatch, "release_check")
    assert check.package_version() == __version__
    wrong = check.complaints("v9.9.9", __version__)
    assert wrong[0] == f"the tag is v9.9.9, the package has version {__version__}"
    assert not any(name in text for text in wrong for name in ("CITATION.cff", "meta.yaml"))


def test_no_release_is_tagged_while_the_address_is_a_placeholder(monkeypatch: pytest.MonkeyPatch) -> None:
    """The addresses in the metadata, the site and the recipe are the same."""
    check = script(monkeypatch, "release_check")
    placeholder = any("captime.example" in address for address in PROJECT["urls"].values())
    refused = [text for text in check.complaints(f"v{__version__}", __version__) if "placeholder" in text]
    assert len(refused) == placeholder
    assert check.complaints("", __version__) == []
    source = PROJECT["urls"]["Source"]
    assert f"repository: {source}\n" in (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    about = recipe()["about"]
    assert (about["home"], about["dev_url"]) == (PROJECT["urls"]["Homepage"], source)


def recipe() -> dict[str, Any]:
    """The conda recipe as conda-build reads it: a template of Jinja, then YAML."""
    text = (ROOT / "packaging" / "conda" / "meta.yaml").read_text(encoding="utf-8")
    found: dict[str, Any] = yaml.safe_load(Template(text, undefined=StrictUndefined).render(PYTHON="python"))
    return found


def test_workflows_call_targets_of_the_makefile() -> None:
    """Every command of a workflow is `make` with a target that exists, so all of it can be done here as well."""
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
    typed = []
    for path in WORKFLOWS:
        for job in yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"].values():
            typed += [step["run"] for step in job["steps"] if "run" in step]
    assert [path.stem for path in WORKFLOWS] == ["docs", "release", "test"]
    assert all(re.match(r"make ([a-z-]+)( |$)", line)[1] in targets for line in typed)  # type: ignore[index]
    assert {line.split()[1] for line in typed} >= {"check", "unit", "docs", "dist", "dist-check"}


def test_workflows_and_metadata_name_the_same_pythons() -> None:
    """Those that the classifiers promise are those that are tested."""
    promised = [each.rpartition(" ")[2] for each in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", each)]
    for name, job in (("test", "unit"), ("release", "install")):
        jobs = yaml.safe_load((ROOT / ".github" / "workflows" / f"{name}.yml").read_text(encoding="utf-8"))["jobs"]
        assert jobs[job]["strategy"]["matrix"]["python-version"] == promised
    assert {"Homepage", "Documentation", "Source", "Issues", "Changelog"} <= PROJECT["urls"].keys()


def test_the_conda_recipe_asks_for_what_the_package_needs() -> None:
    """The same packages with the same lower bounds."""
    told = recipe()
    wanted = [re.sub(r"^([\w-]+)(>=.*)$", r"\1 \2", each).lower() for each in PROJECT["dependencies"]]
    python = f"python {PROJECT['requires-python']}"
    assert sorted(told["requirements"]["run"]) == sorted([python, *wanted])
    assert python in told["requirements"]["host"]
    assert told["package"] == {"name": PROJECT["name"], "version": __version__}
    entry = f"captime = {PROJECT['scripts']['captime']}"
    assert told["build"]["entry_points"] == [entry]
    assert (ROOT / "packaging" / "conda" / told["source"]["path"] / told["about"]["license_file"]).is_file()


def test_the_image_is_linted() -> None:
    """By hadolint, which is part of the development environment."""
    lint = shutil.which("hadolint", path=str(Path(sys.executable).parent))
    assert lint is not None
    done = subprocess.run([lint, str(ROOT / "Dockerfile")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_issue_forms_and_hooks_can_be_read() -> None:
    """YAML with the keys that GitHub and pre-commit ask for; hooks call tools of the development environment."""
    for path in sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")):
        form = yaml.safe_load(path.read_text(encoding="utf-8"))
        assert path.stem == "config" or {"name", "description", "body"} <= form.keys()
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"][0]["hooks"]
    tools = {hook["entry"].split()[0].removeprefix(".venv/bin/") for hook in hooks}
    assert [tool for tool in tools if not (Path(sys.executable).parent / tool).exists()] == []
