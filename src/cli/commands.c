/* The commands of muster, in the order in which help and the man page show them. */
#include "cli/commands.h"

#define SESSIONS "Sessions"
#define INSIDE "Inside a session"
#define DATA "Images and volumes"
#define CLUSTER "Cluster"
#define SETUP "Setting up"

const char *const cli_groups[] = {SESSIONS, INSIDE, DATA, CLUSTER, SETUP, NULL};

/* clang-format off */
const struct command cli_commands[] = {
    { "create", cmd_create, "[OPTION]... IMAGE [COMMAND [ARGUMENT]...]", 1, -1,
      COMMAND_WORDS | COMMAND_STARTS, SESSIONS,
      "Make a session and print its id",
      "  ID=$(muster create --wait --gpus 1 --volume data base)\n"
      "      one container with a GPU, and the volume 'data' at /data/data\n"
      "  muster create --name tune --size 4 --gpus 8 --time 12h pytorch torchrun train.py\n"
      "      a job of four containers that ends with its command\n"
      "  muster create --dry-run --size 16 --gpus 8 base\n"
      "      only say whether and where it would start\n",
      create_options },
    { "run", cmd_run, "[OPTION]... IMAGE COMMAND [ARGUMENT]...", 1, -1,
      COMMAND_WORDS | COMMAND_STARTS | COMMAND_RUNS, SESSIONS, "Make a session, show main1's output, exit with its code",
      "  muster run base echo hello\n"
      "  muster run --size 2 --on all base hostname\n"
      "  muster run --gpus 1 --env WANDB_API_KEY --volume data:/data:ro pytorch python train.py\n"
      "      Ctrl-C stops the session, a second one at once; a closed terminal does not\n",
      run_options },
    { "ls", cmd_ls, "[OPTION]...", 0, 0, 0, SESSIONS, "List sessions",
      "  muster ls\n  muster ls --ended --limit 20\n  muster ls --all --state pending\n", ls_options },
    { "show", cmd_show, "[OPTION]... SESSION", 1, 1, 0, SESSIONS, "Show all about a session",
      "  muster show 12\n  muster show tune -o json\n", cli_plain_options },
    { "why", cmd_why, "[OPTION]... SESSION", 1, 1, 0, SESSIONS,
      "Say why a session waits, or why it ended", "  muster why 12\n", cli_plain_options },
    { "prio", cmd_prio, "[OPTION]... [SESSION]", 0, 1, 0, SESSIONS,
      "Show the queue, and the points that make its order", "  muster prio\n  muster prio 12\n",
      cli_plain_options },
    { "plan", cmd_plan, "[OPTION]...", 0, 0, 0, SESSIONS, "Show what ends and starts when",
      "  muster plan\n  muster plan --svg plan.svg\n", plan_options },
    { "extend", cmd_extend, "[OPTION]... SESSION", 1, 1, 0, SESSIONS, "Give a running session more time",
      "  muster extend --time 4h tune\n", extend_options },
    { "hold", cmd_hold, "[OPTION]... SESSION...", 1, -1, 0, SESSIONS,
      "Keep waiting sessions from being started", "  muster hold 12\n", cli_plain_options },
    { "release", cmd_release, "[OPTION]... SESSION...", 1, -1, 0, SESSIONS,
      "Let held sessions start again", "  muster release 12\n", cli_plain_options },
    { "wait", cmd_wait, "[OPTION]... SESSION", 1, 1, 0, SESSIONS,
      "Wait until a session has ended, or runs",
      "  muster wait tune                    exits with the command's code\n"
      "  muster wait --for running 12\n", wait_options },
    { "stop", cmd_stop, "[OPTION]... SESSION...", 1, -1, 0, SESSIONS, "Stop sessions",
      "  muster stop 12\n  muster stop --now --wait tune\n", stop_options },
    { "events", cmd_events, "[OPTION]...", 0, 0, 0, SESSIONS, "Show what happened, and happens",
      "  muster events -f\n  muster events -o json --after 1200       all of each event, for programs\n", events_options },

    { "ssh", cmd_ssh, "[OPTION]... SESSION[/CONTAINER] [COMMAND...] [-- SSH_OPTION...]", 1, -1,
      COMMAND_WORDS | COMMAND_RUNS, INSIDE, "Work in a session by ssh",
      "  muster ssh tune\n  muster ssh tune/sub1\n  muster ssh tune nvidia-smi\n"
      "  muster ssh tune -- -L 8888:localhost:8888 -N\n", ssh_options },
    { "exec", cmd_exec, "[OPTION]... SESSION[/CONTAINER] [COMMAND [ARGUMENT]...]", 1, -1,
      COMMAND_WORDS | COMMAND_STARTS | COMMAND_RUNS, INSIDE, "Run a command in a running container, or a shell",
      "  muster exec tune\n  muster exec -u root tune sh -c 'apt-get update && apt-get install -y git'\n"
      "  muster exec tune/sub1 cat /etc/hosts\n  tar c . | muster exec tune tar x -C /data/data\n",
      exec_options },
    { "logs", cmd_logs, "[OPTION]... SESSION[/CONTAINER]", 1, 1, 0, INSIDE,
      "Show what a container wrote", "  muster logs -f tune\n  muster logs --timestamps tune/sub3\n",
      logs_options },
    { "forward", cmd_forward, "[OPTION]... SESSION[/CONTAINER] [LOCALPORT:]PORT", 2, 2, 0, INSIDE,
      "Reach a port of a container at 127.0.0.1", "  muster forward tune 8888\n  muster forward tune 9000:80\n",
      forward_options },
    { "tunnel", cmd_tunnel, "SESSION[/CONTAINER] PORT", 2, 2, 0, INSIDE,
      "Connect stdin and stdout to a port of a container",
      "  ssh -o ProxyCommand='muster tunnel tune 22' work@tune\n", cli_talk_options },

    { "image ls", cmd_image_ls, "[OPTION]...", 0, 0, 0, DATA, "List images", NULL, cli_plain_options },
    { "image show", cmd_image_show, "[OPTION]... IMAGE", 1, 1, 0, DATA, "Show an image", NULL,
      cli_plain_options },
    { "image import", cmd_image_import, "[OPTION]... REFERENCE|FILE|FOLDER", 1, 1, 0, DATA,
      "Import an image from a registry, a file or a folder",
      "  muster image import --name pytorch registry.example.com/pytorch:24.05\n"
      "  muster image import ./base.tar\n"
      "  muster image import --name mine ./oci-layout/\n", image_import_options },
    { "image pin", cmd_image_pin, "[OPTION]... IMAGE...", 1, -1, 0, DATA,
      "Keep images, whatever space is needed", NULL, cli_plain_options },
    { "image unpin", cmd_image_unpin, "[OPTION]... IMAGE...", 1, -1, 0, DATA, "Undo a pin", NULL,
      cli_plain_options },
    { "image prune", cmd_image_prune, "[OPTION]...", 0, 0, 0, DATA,
      "Remove images that nobody used for a time, and blobs that no image has", NULL,
      image_prune_options },
    { "image rm", cmd_image_rm, "[OPTION]... IMAGE...", 1, -1, 0, DATA, "Remove images", NULL,
      cli_plain_options },
    { "secret ls", cmd_secret_ls, "[OPTION]...", 0, 0, 0, DATA, "List credentials for registries", NULL,
      cli_plain_options },
    { "secret set", cmd_secret_set, "[OPTION]... [REGISTRY[/PATH]]", 0, 1, 0, DATA,
      "Keep credentials for a registry",
      "  muster secret set --user alice registry.example.com < password\n"
      "  muster secret set --docker-config ~/.docker/config.json\n", secret_set_options },
    { "secret rm", cmd_secret_rm, "[OPTION]... REGISTRY[/PATH]...", 1, -1, 0, DATA,
      "Forget credentials for registries", NULL, secret_rm_options },
    { "volume ls", cmd_volume_ls, "[OPTION]...", 0, 0, 0, DATA, "List volumes", NULL, volume_ls_options },
    { "volume create", cmd_volume_create, "[OPTION]... NAME", 1, 1, 0, DATA, "Make a volume",
      "  muster volume create data\n  muster create --volume data:/data base\n", cli_plain_options },
    { "volume rm", cmd_volume_rm, "[OPTION]... NAME...", 1, -1, 0, DATA, "Remove volumes", NULL,
      volume_rm_options },

    { "node ls", cmd_node_ls, "[OPTION]...", 0, 0, 0, CLUSTER, "List nodes", NULL, cli_plain_options },
    { "node show", cmd_node_show, "[OPTION]... NODE", 1, 1, 0, CLUSTER, "Show all about a node", NULL,
      cli_plain_options },
    { "node add", cmd_node_add, "[OPTION]... [NODE]", 0, 1, 0, CLUSTER,
      "Print the line that makes a machine a node",
      "  muster node add                     for any machine, under its own name\n"
      "  muster node add --group a100 gpu07  for one, also in the place of a node of that name\n",
      node_add_options },
    { "node tokens", cmd_node_tokens, "[OPTION]...", 0, 0, 0, CLUSTER,
      "List the lines of 'node add' that are still good, or revoke one",
      "  muster node tokens\n  muster node tokens --revoke 3\n", node_tokens_options },
    { "node revoke", cmd_node_revoke, "[OPTION]... NODE", 1, 1, 0, CLUSTER,
      "Take no certificate of a node any more: it was stolen; it has to join again", NULL,
      cli_plain_options },
    { "node drain", cmd_node_drain, "[OPTION]... NODE...", 1, -1, 0, CLUSTER,
      "Put no new sessions on nodes", "  muster node drain --reason 'new driver' n3\n"
      "  muster node drain --by 2026-12-24T18:00 n3 n4     until then only what is over by then\n",
      node_drain_options },
    { "node resume", cmd_node_resume, "[OPTION]... NODE...", 1, -1, 0, CLUSTER, "End a drain", NULL,
      cli_plain_options },
    { "node lost", cmd_node_lost, "[OPTION]... NODE", 1, 1, 0, CLUSTER,
      "Declare an unreachable node lost: its sessions end", NULL, cli_plain_options },
    { "node purge", cmd_node_purge, "[OPTION]... NODE", 1, 1, 0, CLUSTER,
      "Remove sessions on a node that the manager does not know", NULL, cli_plain_options },
    { "node rm", cmd_node_rm, "[OPTION]... NODE...", 1, -1, 0, CLUSTER,
      "Forget nodes that are gone for good, whose sessions have ended: they have to join again", NULL,
      cli_talk_options },
    { "node group", cmd_node_group, "[OPTION]... NODE GROUP", 2, 2, 0, CLUSTER, "Put a node in a group",
      NULL, cli_plain_options },
    { "group ls", cmd_group_ls, "[OPTION]...", 0, 0, 0, CLUSTER, "List groups of nodes", NULL,
      cli_plain_options },
    { "group create", cmd_group_create, "[OPTION]... NAME", 1, 1, 0, CLUSTER, "Make a group",
      "  muster group create --kind train --time-max 2d batch\n", group_options },
    { "group set", cmd_group_set, "[OPTION]... NAME", 1, 1, 0, CLUSTER, "Change what a group allows",
      "  muster group set --time-max none batch\n", group_options },
    { "account ls", cmd_account_ls, "[OPTION]...", 0, 0, 0, CLUSTER, "List accounts", NULL,
      cli_plain_options },
    { "account show", cmd_account_show, "[OPTION]... ACCOUNT", 1, 1, 0, CLUSTER,
      "Show an account, and what its users have had", NULL, cli_plain_options },
    { "account create", cmd_account_create, "[OPTION]... NAME", 1, 1, 0, CLUSTER, "Make an account",
      "  muster account create --shares 3 --quota h100:2/8/16 --user kim --user lee vision\n"
      "  muster account create --parent vision --user-debug-gpus 1 --user park interns\n", account_options },
    { "account set", cmd_account_set, "[OPTION]... NAME", 1, 1, 0, CLUSTER, "Change an account",
      "  muster account set --user choi --without lee vision\n", account_options },
    { "account rm", cmd_account_rm, "[OPTION]... ACCOUNT...", 1, -1, 0, CLUSTER,
      "Remove accounts without sessions", NULL, cli_talk_options },
    { "policy show", cmd_policy_show, "[OPTION]...", 0, 0, 0, CLUSTER, "Show the scheduler's knobs", NULL,
      cli_plain_options },
    { "policy set", cmd_policy_set, "[OPTION]... KEY=VALUE...", 1, -1, 0, CLUSTER,
      "Change the scheduler's knobs, from now on",
      "  muster policy set reservations=32 patience=12h\n", cli_plain_options },
    { "export workload", cmd_export_workload, "[OPTION]...", 0, 0, 0, CLUSTER,
      "Print the sessions that ended, as muster-sim reads them",
      "  muster export workload --since 2026-11-01 > month.csv\n"
      "  muster export nodes > nodes.csv && muster-sim --nodes nodes.csv month.csv\n", export_options },
    { "export nodes", cmd_export_nodes, "[OPTION]...", 0, 0, 0, CLUSTER,
      "Print the nodes, as muster-sim reads them", NULL, cli_talk_options },
    { "topology show", cmd_topology_show, "[OPTION]...", 0, 0, 0, CLUSTER,
      "Show which node hangs on which switch", NULL, cli_plain_options },
    { "topology set", cmd_topology_set, "[OPTION]... FILE", 1, 1, 0, CLUSTER,
      "Say which node hangs on which switch, in the form of Slurm's topology.conf",
      "  muster topology set topology.conf\n", cli_plain_options },
    { "user ls", cmd_user_ls, "[OPTION]...", 0, 0, 0, CLUSTER, "List users", NULL, cli_plain_options },
    { "user add", cmd_user_add, "[OPTION]... NAME", 1, 1, 0, CLUSTER,
      "Make a user and print the token, once", "  muster user add --uid 20001 kim\n", user_add_options },

    { "up", cmd_up, "[OPTION]...", 0, 0, COMMAND_LOCAL, SETUP,
      "Start a cluster on this machine, or repair it",
      "  sudo muster up                          this machine as its one node\n"
      "  sudo muster up --nodes 4 --gpu fake:h100:8\n"
      "      four virtual nodes with eight pretend GPUs each, to try things\n", up_options },
    { "down", cmd_down, "[OPTION]...", 0, 0, COMMAND_LOCAL, SETUP,
      "Stop the cluster that 'muster up' started",
      "  sudo muster down              images, volumes and the queue's history stay\n"
      "  sudo muster down --purge\n", down_options },
    { "status", cmd_status, "[OPTION]...", 0, 0, COMMAND_LOCAL, SETUP,
      "Show the cluster that 'muster up' started", NULL, status_options },
    { "login", cmd_login, "[OPTION]... [URL]", 0, 1, 0, SETUP, "Keep the manager's address and a token",
      "  muster login https://manager:7480             asks for the token\n"
      "  muster login https://manager:7480 < FILE      reads it; MUSTER_TOKEN is taken, too\n"
      "  muster login --fingerprint sha256:1d92... https://manager:7480\n"
      "      asks nothing about the manager's own authority, if it is that one\n",
      login_options },
    { "whoami", cmd_whoami, "[OPTION]...", 0, 0, 0, SETUP, "Show who you are to the manager", NULL,
      cli_plain_options },
    { "version", cmd_version, "[OPTION]...", 0, 0, 0, SETUP, "Show versions of client and manager", NULL,
      cli_plain_options },
    { "help", cmd_help, "[OPTION]... [COMMAND]", 0, 2, COMMAND_LOCAL, SETUP, "Explain a command", NULL,
      help_options },
    { NULL }
};
/* clang-format on */
