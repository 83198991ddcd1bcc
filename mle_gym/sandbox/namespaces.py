"""The file system a program sees: a root built from nothing, in namespaces of its own.

:func:`layout` lists what the interpreter needs, once per warm process; :func:`build_root` runs as the first process
of the new namespaces and leaves only that, the task's files (read-only) and three writable folders behind.
"""

from __future__ import annotations

import glob
import os
import site
import stat
import sys
from dataclasses import dataclass, field

from . import syscalls

__all__ = ["HOME", "NAMESPACES", "WORKDIR", "Bind", "Layout", "Refused", "RootSpec", "build_root", "layout"]

NAMESPACES = (
    syscalls.CLONE_NEWUSER
    | syscalls.CLONE_NEWNS
    | syscalls.CLONE_NEWPID
    | syscalls.CLONE_NEWNET
    | syscalls.CLONE_NEWIPC
    | syscalls.CLONE_NEWUTS
)
WORKDIR = "/sandbox"
HOME = "/home/sandbox"
INSIDE_ID = 1000
"""User and group id of the program, seen from inside."""

_PREFIX_ENTRIES = ("bin", "lib", "lib64", "libexec", "include", "share", "etc", "ssl", "pyvenv.cfg", "conda-meta")
_SYSTEM = (
    *("/usr/bin", "/usr/sbin", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libexec", "/usr/share"),
    *("/usr/local/bin", "/usr/local/lib", "/usr/local/lib64", "/usr/local/share", "/nix/store"),
    *("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives", "/etc/fonts"),
    *("/sys/devices/system/cpu", "/sys/devices/system/node"),
)
_ETC = {
    "passwd": f"sandbox:x:{INSIDE_ID}:{INSIDE_ID}::{HOME}:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n",
    "group": f"sandbox:x:{INSIDE_ID}:\nnogroup:x:65534:\n",
    "hosts": "127.0.0.1 localhost sandbox\n::1 localhost\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    "hostname": "sandbox\n",
    "resolv.conf": "",
}
_DEVICES = ("null", "zero", "full", "random", "urandom")
_STUB = "raise ModuleNotFoundError(f'No module named {__name__!r}', name=__name__)\n"


class Refused(Exception):
    """The run cannot be isolated as asked; the message is one sentence."""


@dataclass
class Bind:
    """One read-only mount: host ``source`` seen at ``target``."""

    source: str
    target: str
    private: bool = False
    """Other users may not read it, so its owner must be mapped to the program's user where that is another one."""
    tree: int = -1
    """Detached mount with mapped owners, made by the supervisor."""
    device: bool = False


@dataclass
class Layout:
    """What every run of one interpreter mounts."""

    binds: list[Bind] = field(default_factory=list)
    links: list[tuple[str, str]] = field(default_factory=list)
    """(path, what it points to)."""


@dataclass
class RootSpec:
    """The root file system of one run."""

    layout: Layout
    files: list[Bind]
    """Read-only mounts in the working folder."""
    hidden: list[str]
    """Resolved host paths to mask wherever a mount would show them."""
    packages: list[str]
    """Resolved host folders of packages that must not be importable."""
    protected: list[str]
    """Resolved host folders to mask where the interpreter's mounts would show them."""
    disk_mb: int
    shm_mb: int
    scratch: str = ""
    """Host folder for what the program writes; in memory where empty."""
    drop_user: bool = False
    """The process is real root and must take the mapped user before it builds anything."""


def _under(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def layout(*, gpus: bool = False) -> Layout:
    """List the mounts the running interpreter needs, by looking at itself and the system."""
    found = Layout()

    def visible(path: str) -> bool:
        return any(_under(path, bind.target) for bind in found.binds)

    def show(path: str) -> None:
        if os.path.lexists(path) and not visible(path):
            if os.path.islink(path) and visible(os.path.join(os.path.dirname(path), os.readlink(path))):
                found.links.append((path, os.readlink(path)))
            elif os.path.exists(path):
                found.binds.append(Bind(os.path.realpath(path), path))

    for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32"):
        if os.path.islink(f"/{name}"):
            found.links.append((f"/{name}", os.readlink(f"/{name}")))
        elif os.path.isdir(f"/{name}"):
            found.binds.append(Bind(f"/{name}", f"/{name}"))
    for path in _SYSTEM:
        show(path)
    for prefix in dict.fromkeys([sys.base_prefix, sys.base_exec_prefix, sys.prefix, sys.exec_prefix]):
        for entry in _PREFIX_ENTRIES:
            show(os.path.join(prefix, entry))
    packages = [p for p in sys.path if os.path.basename(p) in ("site-packages", "dist-packages")]
    if site.ENABLE_USER_SITE and site.getusersitepackages() in sys.path:
        packages.append(site.getusersitepackages())
    for path in packages:
        show(path)
    # The executable may be a chain of links from a virtual environment to the real interpreter.
    path = sys.executable
    for _ in range(16):
        if not os.path.islink(path):
            show(path)
            break
        if not visible(path):
            found.links.append((path, os.readlink(path)))
        path = os.path.normpath(os.path.join(os.path.dirname(path), os.readlink(path)))
    if gpus:
        for path in [*glob.glob("/usr/local/cuda*"), "/sys"]:
            show(path)
        for path in glob.glob("/dev/nvidia*"):
            found.binds.append(Bind(path, path, device=True))
    return found


def build_root(spec: RootSpec) -> int:
    """Turn this process's mount namespace into the program's world; returns a descriptor of the working folder.

    Must run as process 1 of the new namespaces, after the user map was written.

    Raises:
        Refused: A hidden path could not be masked.
        OSError: The kernel refused a step.
    """
    for kind in (*spec.layout.binds, *spec.files):
        _open_source(kind)
    if spec.scratch:
        scratch_fd = os.open(spec.scratch, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    if spec.drop_user:
        # Sources were opened as the invoking user (they may lie below a 0700 folder); all else happens as the
        # program's user, so that nothing inside belongs to root.
        syscalls.keep_capabilities()
        os.setgroups([])
        os.setresgid(INSIDE_ID, INSIDE_ID, INSIDE_ID)
        os.setresuid(INSIDE_ID, INSIDE_ID, INSIDE_ID)
    syscalls.sethostname("sandbox")
    syscalls.bring_up_loopback()
    os.umask(0o022)
    root = "/tmp"
    syscalls.mount(None, "/", None, syscalls.MS_REC | syscalls.MS_PRIVATE)
    quiet = syscalls.MS_NOSUID | syscalls.MS_NODEV
    syscalls.mount("sandbox", root, "tmpfs", quiet, "size=4m,nr_inodes=4096,mode=755")
    for folder in ("/proc", "/dev", "/etc", "/sys", "/run", "/var/tmp", "/.writable", "/.masks", WORKDIR, HOME, "/tmp"):
        os.makedirs(root + folder, exist_ok=True)
    syscalls.mount("proc", root + "/proc", "proc", quiet | syscalls.MS_NOEXEC)
    for name in ("sys", "sysrq-trigger", "irq", "bus"):
        # A second lock: where the program's user is the host's root, files here would be writable.
        path = f"{root}/proc/{name}"
        if os.path.exists(path):
            syscalls.mount(path, path, None, syscalls.MS_BIND)
            syscalls.restrict_mount(path, syscalls.MS_RDONLY | quiet)
    writable = root + "/.writable"
    if spec.scratch:
        syscalls.mount(f"/proc/self/fd/{scratch_fd}", writable, None, syscalls.MS_BIND)
        syscalls.mount(None, writable, None, syscalls.MS_REMOUNT | syscalls.MS_BIND | quiet)
        os.close(scratch_fd)
    else:
        inodes = 4096 + spec.disk_mb * 64
        syscalls.mount("work", writable, "tmpfs", quiet, f"size={spec.disk_mb}m,nr_inodes={inodes},mode=755")
    for name, target in (("work", WORKDIR), ("home", HOME), ("tmp", "/tmp"), ("tmp", "/var/tmp")):
        os.makedirs(f"{writable}/{name}", exist_ok=True)
        syscalls.mount(f"{writable}/{name}", root + target, None, syscalls.MS_BIND)
    os.chmod(root + "/tmp", 0o1777)
    syscalls.umount2(writable, syscalls.MNT_DETACH)
    os.rmdir(writable)
    _make_dev(root, spec.shm_mb)
    for name, text in _ETC.items():
        with open(f"{root}/etc/{name}", "w", encoding="utf-8") as file:
            file.write(text)
    for bind in spec.layout.binds:
        _attach(bind, root)
    for path, destination in spec.layout.links:
        os.makedirs(os.path.dirname(root + path), exist_ok=True)
        if not os.path.lexists(root + path):
            os.symlink(destination, root + path)
    for bind in spec.files:
        _attach(bind, root)
    _mask(spec, root)
    os.chdir(root)
    syscalls.pivot_root(".", ".")
    syscalls.umount2(".", syscalls.MNT_DETACH)
    os.chdir("/")
    syscalls.mount(None, "/", None, syscalls.MS_REMOUNT | syscalls.MS_BIND | syscalls.MS_RDONLY | quiet)
    return os.open(WORKDIR, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def _open_source(bind: Bind) -> None:
    if bind.tree < 0:
        bind.tree = -2 - os.open(bind.source, os.O_PATH | os.O_CLOEXEC)


def _attach(bind: Bind, root: str) -> None:
    """Mount one opened source; ``tree`` holds a detached mount, or an O_PATH descriptor coded as -2 - fd."""
    detached = bind.tree >= 0
    fd = bind.tree if detached else -2 - bind.tree
    target = root + bind.target
    _make_point(target, stat.S_ISDIR(os.fstat(fd).st_mode))
    if detached:
        syscalls.move_mount(fd, target)
    else:
        syscalls.mount(f"/proc/self/fd/{fd}", target, None, syscalls.MS_BIND | syscalls.MS_REC)
    os.close(fd)
    nodev = 0 if bind.device else syscalls.MS_NODEV
    syscalls.restrict_mount(target, syscalls.MS_RDONLY | syscalls.MS_NOSUID | nodev)


def _make_point(target: str, folder: bool) -> None:
    if os.path.exists(target):
        return
    if folder:
        os.makedirs(target)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o444))


def _make_dev(root: str, shm_mb: int) -> None:
    for name in _DEVICES:
        target = f"{root}/dev/{name}"
        _make_point(target, folder=False)
        syscalls.mount(f"/dev/{name}", target, None, syscalls.MS_BIND)
        syscalls.restrict_mount(target, syscalls.MS_NOSUID | syscalls.MS_NOEXEC)
    os.mkdir(root + "/dev/shm")
    quiet = syscalls.MS_NOSUID | syscalls.MS_NODEV
    syscalls.mount("shm", root + "/dev/shm", "tmpfs", quiet, f"size={shm_mb}m,nr_inodes=16384,mode=1777")
    for name, destination in (("fd", "fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")):
        os.symlink(f"/proc/self/{destination}", f"{root}/dev/{name}")


def _mask(spec: RootSpec, root: str) -> None:
    masks = root + "/.masks"
    os.mkdir(masks + "/folder", 0o555)
    os.close(os.open(masks + "/file", os.O_WRONLY | os.O_CREAT, 0o000))
    os.mkdir(masks + "/package")
    with open(masks + "/package/__init__.py", "w", encoding="utf-8") as file:
        file.write(_STUB)
    for kind, paths in (("folder", spec.hidden), ("package", spec.packages), ("folder", spec.protected)):
        # What is merely protected holds the task's files, which are meant to be seen.
        for path in paths:
            for bind in spec.layout.binds if paths is spec.protected else [*spec.layout.binds, *spec.files]:
                if _under(path, bind.source):
                    _mask_one(root + bind.target + path[len(bind.source) :], kind, masks, path)
                elif paths is spec.hidden and _under(bind.source, path):
                    raise Refused(f"{path} must stay hidden but holds {bind.source}, which the program needs")


def _mask_one(target: str, kind: str, masks: str, path: str) -> None:
    try:
        mode = os.stat(target, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return  # the file system is the host's own, so what is not there cannot be read either
    if stat.S_ISDIR(mode):
        source = f"{masks}/{kind}"
    elif stat.S_ISREG(mode):
        source = f"{masks}/file"
    else:
        raise Refused(f"{path} must stay hidden but is neither a file nor a folder")
    try:
        syscalls.mount(source, target, None, syscalls.MS_BIND)
        syscalls.restrict_mount(target, syscalls.MS_RDONLY | syscalls.MS_NOSUID | syscalls.MS_NODEV)
        covered = os.path.samestat(os.stat(source), os.stat(target))
    except OSError as error:
        raise Refused(f"{path} must stay hidden and could not be masked ({error.strerror})") from error
    if not covered:
        raise Refused(f"{path} must stay hidden and the mask over it did not take effect")
