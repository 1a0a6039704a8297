/* `muster-agent join`: making this machine a node. */
#ifndef AGENT_JOIN_H
#define AGENT_JOIN_H

/* argv[0] is "join". Prints; returns the exit code. */
int join_main(int argc, char **argv);

#endif
