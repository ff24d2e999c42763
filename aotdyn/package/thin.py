"""Packages with less in them: what one deployment needs of a package that was made for several."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from .archive import Artifact, PackageFile, is_same_file, write_package
from .errors import AotdynError
from .pack import ALWAYS
from .printer import sized

_LIBRARY = ".so"  # of `cpu` artifacts: one file for each vector ISA


@dataclass(frozen=True)
class ThinReport:
    """What was kept. size, before: of the files, in bytes."""

    path: Path
    size: int
    before: int
    targets: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"{self.path}: for {', '.join(self.targets)}; "
            f"{sized(self.size)} instead of {sized(self.before)}"
        )


def thin(
    package: str | os.PathLike,
    path: str | os.PathLike,
    targets: Sequence[str] = (),
    isas: Sequence[str] = (),
) -> ThinReport:
    """Copies a package without the code for other targets than `targets`, and without the
    libraries for other vector ISAs than `isas`. What is empty leaves nothing out.

    The target `eager` is always kept: it serves calls that compiled code does not take. Raises
    AotdynError for a target or ISA that the package does not have, and when the file cannot be
    written; PackageError for a damaged package.
    """
    if is_same_file(path, package):
        raise AotdynError(f"the package {package} would be overwritten")
    with PackageFile.open(package) as file:
        contents = file.contents()
        kept = _chosen("target", targets, contents.targets)
        artifacts = {
            id: {target: each for target, each in found.items() if target in (ALWAYS, *kept)}
            for id, found in contents.artifacts.items()
        }
        every = [artifact for found in artifacts.values() for artifact in found.values()]
        chosen = _chosen("ISA", isas, {isa for artifact in every for isa in _isas(artifact)})
        artifacts = {
            id: {target: _for(chosen, each) for target, each in found.items()}
            for id, found in artifacts.items()
        }
        needs = {t: need for t, need in contents.targets.items() if t in (ALWAYS, *kept)}
        size = write_package(path, replace(contents, artifacts=artifacts, targets=needs))
        return ThinReport(Path(path), size, file.size, tuple(needs))


def _chosen(what: str, wanted: Sequence[str], there: "dict[str, object] | set[str]") -> set[str]:
    unknown = sorted(set(wanted) - set(there))
    if unknown:
        found = ", ".join(sorted(there)) or "none"
        raise AotdynError(f"the package has no {what} {unknown[0]}; it has {found}")
    return set(wanted or there)


def _isas(artifact: Artifact) -> list[str]:
    """Those that the artifact has libraries for."""
    if artifact.target != "cpu":
        return []
    return [name.removesuffix(_LIBRARY) for name in artifact.files if name.endswith(_LIBRARY)]


def _for(isas: set[str], artifact: Artifact) -> Artifact:
    """The artifact without libraries for other ISAs."""
    dropped = {f"{isa}{_LIBRARY}" for isa in _isas(artifact) if isa not in isas}
    files = {name: data for name, data in artifact.files.items() if name not in dropped}
    return replace(artifact, files=files)
