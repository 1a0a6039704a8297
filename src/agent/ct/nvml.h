/* NVIDIA's management library, loaded at run time. Internal to this folder. */
#ifndef AGENT_CT_NVML_H
#define AGENT_CT_NVML_H

#include "model/node.h"

/* -ENOENT: the library is not there; -EIO: it cannot talk to a driver. */
int nvml_discover(struct gpu **ret, uint32_t *ret_count, struct err *err);
/* "NVIDIA H100 80GB HBM3" -> "h100", "NVIDIA GeForce RTX 4090" -> "rtx4090". */
void gpu_model_name(const char *product, char model[NAME_MAX_LEN + 1]);

#endif
