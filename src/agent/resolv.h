/* Can sessions reach the node's name servers? */
#ifndef AGENT_RESOLV_H
#define AGENT_RESOLV_H

/* Warn of each name server of the node (resolv.conf(5)) that sessions must not reach. blocked:
 * CIDRs. */
void resolv_check(char *const *blocked);

#endif
