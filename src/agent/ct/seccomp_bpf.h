/* A seccomp profile as a program for the kernel. Internal to this folder. */
#ifndef AGENT_CT_SECCOMP_BPF_H
#define AGENT_CT_SECCOMP_BPF_H

#include "base/json.h"

/*
 * linux.seccomp of the OCI runtime specification compiled by libseccomp, in base64: what crun's
 * annotation run.oci.seccomp_bpf_data takes (crun(1)). crun would compile it for each container, in
 * 15 ms. System calls that this machine does not know are left out, as crun leaves them out.
 * -ENOTSUP for what is not a matter of the program alone (SCMP_ACT_NOTIFY, flags). *ret: heap.
 */
int seccomp_bpf(const json_t *oci, char **ret, struct err *err);

#endif
