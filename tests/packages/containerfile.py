"""Follows a Containerfile without a container engine: each stage is a directory, and RUN is chroot.

It knows the instructions that ours uses, and refuses others.
"""
import fnmatch
import json
import os
import pathlib
import shlex
import shutil
import tempfile

from debian import ROOT, Debian, run


def instructions(text):
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        name, _, rest = line.strip().partition(" ")
        yield name, rest.strip()


def ignored():
    """A function for shutil.copytree that leaves out what .dockerignore names."""
    patterns = (ROOT / ".dockerignore").read_text().split()

    def chosen(folder, names):
        below = os.path.relpath(folder, ROOT)
        paths = {name: os.path.normpath(os.path.join(below, name)) for name in names}
        return {name for name, path in paths.items() for pattern in patterns
                if fnmatch.fnmatch(path, pattern) or pattern.startswith("**/") and fnmatch.fnmatch(name, pattern[3:])}
    return chosen


class Stage:
    def __init__(self, image):
        assert image in ("debian:12", "scratch"), f"unknown image {image}"
        self.debian = Debian() if image == "debian:12" else None
        self.root = self.debian.root if self.debian else pathlib.Path(tempfile.mkdtemp(prefix="vigil-image-"))
        self.root.chmod(0o755)
        self.directory = "/"
        self.user = "0:0"
        self.volumes, self.ports, self.entrypoint, self.command = [], [], [], []

    def inside(self, path):
        return self.root / os.path.normpath(os.path.join(self.directory, path)).lstrip("/")


class Image:
    """The last stage; `last` has its user, volumes and command."""

    def __init__(self, path):
        self.stages, self.last = {}, None
        for name, rest in instructions(path.read_text()):
            getattr(self, "do_" + name.lower())(rest)

    def remove(self):
        for stage in self.stages.values():
            shutil.rmtree(stage.root)

    def do_from(self, rest):
        words = rest.split()
        self.last = Stage(words[0])
        self.stages[words[2] if len(words) == 3 else str(len(self.stages))] = self.last

    def do_copy(self, rest):
        words = rest.split()
        flags = dict(word[2:].split("=") for word in words if word.startswith("--"))
        source, target = [word for word in words if not word.startswith("--")]
        assert set(flags) <= {"from", "chown"}, flags
        # An engine does not keep the owner: it is root, or the one that is given.
        new = pathlib.Path(tempfile.mkdtemp(prefix="vigil-copy-"))
        if "from" in flags:
            shutil.copytree(self.stages[flags["from"]].inside(source), new, symlinks=True, dirs_exist_ok=True)
        else:
            shutil.copytree(ROOT / source, new, symlinks=True, dirs_exist_ok=True, ignore=ignored())
        run("chown", "-hR", flags.get("chown", "0:0"), new)
        self.last.inside(target).mkdir(parents=True, exist_ok=True)
        run("cp", "-a", f"{new}/.", f"{self.last.inside(target)}/")
        shutil.rmtree(new)

    def do_workdir(self, rest):
        self.last.inside(rest).mkdir(parents=True, exist_ok=True)
        self.last.directory = rest

    def do_run(self, rest):
        self.last.debian.run("/bin/sh", "-c", rest, directory=self.last.directory)

    def do_user(self, rest):
        self.last.user = rest

    def do_volume(self, rest):
        self.last.volumes.append(rest)

    def do_expose(self, rest):
        self.last.ports += shlex.split(rest)

    def do_entrypoint(self, rest):
        self.last.entrypoint = json.loads(rest)

    def do_cmd(self, rest):
        self.last.command = json.loads(rest)
