"""What one run needs before its first process starts: mounts, folders, environment."""

from __future__ import annotations

import os
import shutil
import site
import sys
from typing import Any

from . import namespaces, syscalls, users

__all__ = ["complete", "remove", "root_spec"]

_THREADS = (
    *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "NUMEXPR_MAX_THREADS"),
    *("VECLIB_MAXIMUM_THREADS", "BLIS_NUM_THREADS", "LOKY_MAX_CPU_COUNT", "RAYON_NUM_THREADS"),
)


def root_spec(
    request: dict[str, Any], layout: namespaces.Layout | None, user: users.User | None
) -> namespaces.RootSpec | None:
    """Return the root file system of a run; None without isolation. Makes the folders of ``request["scratch"]``.

    Raises:
        Refused: An input cannot be shown to the program.
    """
    scratch: str = request["scratch"]
    if scratch:
        os.chmod(scratch, 0o711)
        for name in ("work", "home", "tmp"):
            path = os.path.join(scratch, name)
            os.mkdir(path)
            if user is not None and user.dropped:
                os.chown(path, user.uid, user.gid)
    if user is None or layout is None:
        return None
    limits, files = request["limits"], request["files"]
    if limits["gpus"]:
        layout = namespaces.layout(gpus=True)
    binds = [
        namespaces.Bind(source, f"{namespaces.WORKDIR}/{name}", private=private)
        for name, (source, private) in files.items()
    ]
    if user.dropped:
        _map_owners([*layout.binds, *binds], user)
    return namespaces.RootSpec(
        layout=layout,
        files=binds,
        hidden=request["hidden"],
        packages=request["packages"],
        protected=request["protected"],
        disk_mb=limits["disk_mb"],
        shm_mb=limits["memory_mb"],
        scratch=scratch,
        drop_user=user.dropped,
    )


def complete(request: dict[str, Any], isolated: bool) -> None:
    """Add ``job``, what the program's process needs, to the request."""
    given, scratch = request["program"], request["scratch"]
    if isolated:
        workdir, home, tmp = namespaces.WORKDIR, namespaces.HOME, "/tmp"
    else:
        workdir, home, tmp = (os.path.join(scratch, name) for name in ("work", "home", "tmp"))
        for name, (source, _) in request["files"].items():
            os.makedirs(os.path.dirname(os.path.join(workdir, name)), exist_ok=True)
            os.symlink(source, os.path.join(workdir, name))
    threads = max(1, len(request["cores"]))
    env = {
        "PATH": f"{os.path.dirname(sys.executable)}:/usr/local/bin:/usr/bin:/bin",
        "HOME": home,
        "USER": "sandbox",
        "LOGNAME": "sandbox",
        "LANG": "C.UTF-8",
        "TMPDIR": tmp,
        "MPLBACKEND": "Agg",
        "MPLCONFIGDIR": os.path.join(home, ".matplotlib"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
        "MLE_SEED": str(given["seed"]),
        **{name: str(threads) for name in _THREADS},
    }
    env["CUDA_VISIBLE_DEVICES"] = ",".join(str(i) for i in range(request["limits"]["gpus"]))
    if "LD_LIBRARY_PATH" in os.environ:
        env["LD_LIBRARY_PATH"] = os.environ["LD_LIBRARY_PATH"]
    if site.ENABLE_USER_SITE:
        env["PYTHONUSERBASE"] = site.getuserbase()
    for name, value in given["env"].items():
        env[name] = os.path.join(workdir, value[2:]) if value.startswith("./") else value
    request["job"] = {
        **{key: given[key] for key in ("source", "hooks", "context", "seed")},
        "env": env,
        "workdir": workdir,
        "threads": threads,
    }


def remove(folder: str) -> None:
    """Delete a folder that a program wrote, whatever permissions it left behind."""
    if not folder or not os.path.isdir(folder):
        return
    for parent, names, _ in os.walk(folder):
        for name in names:
            path = os.path.join(parent, name)
            if not os.path.islink(path):
                os.chmod(path, 0o700)  # before the walk descends
    shutil.rmtree(folder)


def _map_owners(binds: list[namespaces.Bind], user: users.User) -> None:
    """Show files that only their owner may read as the program's own."""
    maps: dict[tuple[int, int], int] = {}
    for bind in binds:
        if not bind.private:
            continue
        info = os.stat(bind.source)
        owner = (info.st_uid, info.st_gid)
        try:
            if owner not in maps:
                maps[owner] = users.owner_map(owner, user)
            bind.tree = syscalls.idmapped_tree(bind.source, maps[owner])
        except OSError as error:
            raise namespaces.Refused(
                f"{bind.source} is closed to the sandbox's user and its file system cannot map owners "
                f"({error.strerror}); open it with chmod -R a+rX"
            ) from error
    for fd in maps.values():
        os.close(fd)
