/* What a machine that joins, an agent and the manager agree on about certificates. */
#ifndef WIRE_JOIN_H
#define WIRE_JOIN_H

/* The name for which agents want the manager's certificate, whatever address they dialled. Asking
 * for it (SNI) is how they get the cluster's own one, not that which people see. */
#define JOIN_MANAGER_NAME "manager.muster"

/* Organizational units: what a certificate is for. */
#define JOIN_ROLE_MANAGER "manager"
#define JOIN_ROLE_NODE "node"

#define JOIN_TOKEN_PREFIX "mjt_" /* so that scanners for leaked secrets can find them */

#endif
