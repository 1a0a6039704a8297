"""Pi by four containers: each rank sums its part of the integral of 4/(1+x^2), rank 0 adds up.

    muster volume create demo               (and this file into it)
    muster run --size 4 --mode multi-node --volume demo:/demo mpi \\
        mpirun --map-by ppr:1:node python3 /demo/pi.py
"""
import math
import socket
import time

from mpi4py import MPI

STEPS = 4_000_000

world = MPI.COMM_WORLD
rank, ranks = world.Get_rank(), world.Get_size()
world.Barrier()
start = time.monotonic()
width = 1.0 / STEPS
part = width * sum(4.0 / (1.0 + ((i + 0.5) * width) ** 2) for i in range(rank, STEPS, ranks))
here = {"host": socket.gethostname(), "part": part, "seconds": time.monotonic() - start}
everybody = world.gather(here)
pi = world.reduce(part)
if rank == 0:
    for i, one in enumerate(everybody):
        print(f"rank {i} on {one['host']}: {one['part']:.12f} in {one['seconds']:.2f} s")
    print(f"pi = {pi:.12f}, off by {abs(pi - math.pi):.1e}: {ranks} ranks, {STEPS:,} steps, "
          f"{time.monotonic() - start:.2f} s")
