#!/usr/bin/env bash
# Unpacks the packets of pack.py on the GPU machine: . experiments/gpu/setup.sh FOLDER
# It sets PYTHONPATH and LD_LIBRARY_PATH for the commands that follow; without a folder it sets them alone.
site=${MEMLAB_SITE:-/tmp/memlab-site}
mkdir -p "$site"
[ $# -eq 0 ] || cat "$1"/packet.* | tar xJ -C "$site"
export PYTHONPATH="$PWD:$site" HF_HUB_OFFLINE=1 PYTHONUNBUFFERED=1
if [ -d "$site/faiss" ]; then
  here=$(dirname "${BASH_SOURCE[0]}")
  cublas=$(python3 -c 'import glob, torch; from pathlib import Path; print(glob.glob(f"{Path(torch.__file__).parents[1]}/nvidia/**/libcublas.so.13", recursive=True)[0])')
  if [ ! -f "$site/libcublas.so.12" ]; then
    printf 'libcublas.so.12 { global: cublas*; local: *; };\n' > "$site/cublas12.map"
    gcc -O2 -shared -fPIC -Wl,-soname,libcublas.so.12 -Wl,--version-script="$site/cublas12.map" \
      -o "$site/libcublas.so.12" "$here/cublas12.c" -ldl
    rm -f "$site/faiss/_gpu_build.py"   # with it FAISS looks for the package of cuBLAS 12
    gcc -shared -Wl,-soname,libcublasLt.so.12 -o "$site/libcublasLt.so.12" -x c /dev/null   # named, never called
  fi
  export LD_LIBRARY_PATH="$site:$site/nvidia/cuda_runtime/lib:$(dirname "$cublas")${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
fi
