"""Mounts of a simulated HyperPod node: root on EBS, /dev/shm, NVMe scratch, FSx for Lustre."""

from __future__ import annotations

from straggler.engine.simcluster.base import Reply, SimNode


def say(node: SimNode) -> Reply:
    draw = node.random("filesystems")
    worker = node.has.accelerator != "none"
    table = [
        ("/dev/nvme0n1p1", "/", "xfs", "rw,noatime,attr2,inode64", 104_845_292, draw.uniform(0.38, 0.52)),
        ("tmpfs", "/dev/shm", "tmpfs", "rw,nosuid,nodev", 1_056_784_112 if worker else 16_256_000, 0.001),
        ("10.1.240.17@tcp:/fsxmnt", "/fsx", "lustre", "rw,noatime,flock", 118_111_600_640, 0.61),
    ]
    if worker:
        table.append(
            ("/dev/md0", "/opt/dlami/nvme", "xfs", "rw,noatime", 29_296_000_000, draw.uniform(0.02, 0.3))
        )
    lines = ["mounts", "proc /proc proc rw,nosuid,nodev,noexec,relatime 0 0"]
    lines += [f"{device} {path} {kind} {options} 0 0" for device, path, kind, options, _, _ in table]
    lines.append("df")
    for device, path, _, _, kib, share in table:
        used = int(kib * share)
        row = f"{device:<24} {kib:>12} {used:>12} {kib - used:>12} {-(-100 * used // kib):>3}% {path}"
        lines += [
            f"said {path} | Filesystem     1024-blocks      Used Available Capacity Mounted on",
            f"said {path} | {row}",
        ]
        lines.append(f"ended {path}")
    lines += ["inodes", f"/dev/nvme0n1p1 52428288 {draw.randrange(400_000, 900_000)} 51600000 2% /", "end"]
    return Reply("\n".join(lines) + "\n")
