/* CUDA 12's names of the cuBLAS calls that FAISS makes, handed to the cuBLAS 13 that PyTorch brings: their arguments are
   the same in both. Only for machines that cannot install cuBLAS 12 (600 MB). x86-64 Linux.
   setup.sh compiles it.
*/
#include <dlfcn.h>
#include <stdio.h>

#define FORWARD(name)                                   \
    void *target_##name __attribute__((visibility("hidden"))); \
    __asm__(".globl " #name "\n.type " #name ", @function\n" #name ":\n  jmp *target_" #name "(%rip)\n");

#define CALLS(DO)                                                                                             \
    DO(cublasCreate_v2) DO(cublasDestroy_v2) DO(cublasSetStream_v2) DO(cublasGetMathMode) DO(cublasSetMathMode) \
    DO(cublasSgemmEx) DO(cublasGemmEx) DO(cublasGemmStridedBatchedEx)

CALLS(FORWARD)

__attribute__((constructor)) static void resolve(void) {
    void *library = dlopen("libcublas.so.13", RTLD_NOW | RTLD_GLOBAL);
    if (!library) {
        fprintf(stderr, "cublas12: %s\n", dlerror());
        return;
    }
#define RESOLVE(name) target_##name = dlsym(library, #name);
    CALLS(RESOLVE)
}
