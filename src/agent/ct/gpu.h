/*
 * The node's GPUs: real ones by NVML (dlopen) and a CDI specification, or pretend ones
 * ("fake:h100:8") whose device nodes have no driver behind them.
 */
#ifndef AGENT_CT_GPU_H
#define AGENT_CT_GPU_H

#include "agent/ct/runtime.h"
#include "model/node.h"

/* spec: "none", "auto" (NVML if it loads, else none), "fake:MODEL:COUNT". gpus: heap, *ret_count of
 * them. For fake ones the nodes 195:N are made below dev_dir. */
int gpu_discover(const char *spec, const char *dev_dir, const char *node_name, struct gpu **ret,
    uint32_t *ret_count, struct err *err);
/* Devices, mounts and NVIDIA_VISIBLE_DEVICES / CUDA_VISIBLE_DEVICES for a container that was given
 * these GPUs ("void" and "" when none). */
int gpu_inject(const char *spec, const char *dev_dir, const struct gpu *gpus, uint32_t gpu_count,
    const uint32_t *given, uint32_t given_count, struct runtime_extra *ret, struct err *err);
void runtime_extra_done(struct runtime_extra *x);

#endif
