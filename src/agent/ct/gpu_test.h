/* For tests of gpu.h only. */
#ifndef AGENT_CT_GPU_TEST_H
#define AGENT_CT_GPU_TEST_H

/* Read CDI files, /proc and /dev below this folder ("": the node itself). Kept by reference. */
void gpu_set_root(const char *root);

#endif
