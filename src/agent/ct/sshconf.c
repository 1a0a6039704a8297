/*
 * Configuration of OpenSSH inside a session. The client's settings apply to the session's own names
 * only, so that ssh(1) to any other host behaves as everywhere.
 */
#include "agent/ct/sshconf.h"

#include "base/buf.h"
#include "base/strv.h"

/* sshd passes its configuration to a session's process as one message of at most 256 KiB. */
#define SETENV_MAX CONTAINER_ENV_BYTES_MAX
#define CONFIG_MAX (1024 * 1024)
/* Older clients read their configuration in lines of at most 1024 bytes. */
#define HOST_LINE_MAX 900

static const char server_fixed[] =
    "Port 22\n"
    "HostKey " SSHCONF_DIR "/host_ed25519\n"
    "AuthorizedKeysFile " SSHCONF_DIR "/authorized_keys\n"
    "StrictModes no\n" /* the keys lie on a read-only mount of another owner */
    /* UsePAM is off by default, and a build without PAM complains about the word. */
    "PubkeyAuthentication yes\n"
    "PasswordAuthentication no\n"
    "KbdInteractiveAuthentication no\n"
    "PidFile none\n"
    "UseDNS no\n"
    "PrintMotd no\n"
    "X11Forwarding no\n"
    "AllowTcpForwarding yes\n"
    "MaxSessions 1000\n" /* launchers open many at once */
    "MaxStartups 1000\n"
    "Subsystem sftp internal-sftp\n"
    "LogLevel ERROR\n";

/* One word of sshd_config: in double quotes, '"' and '\' escaped (argv_split in OpenSSH). */
static void put_quoted(struct buf *b, const char *text)
{
    buf_puts(b, " \"");
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            buf_append(b, "\\", 1);
        buf_append(b, text, 1);
    }
    buf_append(b, "\"", 1);
}

/* A line break cannot be written in sshd_config: such a variable exists for the command only. */
static bool is_one_line(const char *text)
{
    return !strpbrk(text, "\r\n");
}

int sshconf_server(char *const *env, const char *name, char **ret, struct err *err)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(CONFIG_MAX);
    size_t start;

    buf_puts(&b, server_fixed);
    start = b.len;
    buf_puts(&b, "SetEnv");
    if (!strv_env_get(env, "PS1")) {
        _cleanup_free_ char *prompt = xasprintf("PS1=work@%s$ ", name);

        put_quoted(&b, prompt);
    }
    for (; env && *env && b.len - start <= SETENV_MAX; env++)
        if (strchr(*env, '=') && is_one_line(*env))
            put_quoted(&b, *env);
    if (b.len - start > SETENV_MAX)
        return err_set(
            err, -E2BIG, "the environment is larger than the %d bytes that sshd takes", SETENV_MAX);
    buf_puts(&b, "\n");
    *ret = buf_take(&b);
    return 0;
}

static void put_address(struct buf *b, uint32_t ip)
{
    buf_printf(b, "%u.%u.%u.%u", ip >> 24, ip >> 16 & 255, ip >> 8 & 255, ip & 255);
}

static void put_client_rules(struct buf *b)
{
    buf_puts(b,
        "\n"
        "    User work\n"
        "    IdentityFile " SSHCONF_DIR "/id_ed25519\n"
        "    UserKnownHostsFile " SSHCONF_DIR "/known_hosts\n"
        "    GlobalKnownHostsFile /dev/null\n"
        "    StrictHostKeyChecking yes\n"
        "    KexAlgorithms " SSHCONF_KEX "\n"
        "    UpdateHostKeys no\n"
        "    CheckHostIP no\n"
        "    PasswordAuthentication no\n"
        "    LogLevel ERROR\n");
}

char *sshconf_client(const struct assignment *a)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(CONFIG_MAX);
    size_t line = 0;

    for (uint32_t i = 0; i < a->peer_count; i++) {
        if (i == 0 || b.len - line > HOST_LINE_MAX) {
            if (i > 0)
                put_client_rules(&b);
            line = b.len;
            buf_puts(&b, "Host");
        }
        buf_printf(&b, " %s ", a->peers[i].name);
        put_address(&b, a->peers[i].ip);
    }
    if (a->peer_count > 0)
        put_client_rules(&b);
    return buf_take(&b);
}

char *sshconf_known_hosts(const struct assignment *a)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(CONFIG_MAX);
    const char *key = a->ssh_host_public ? a->ssh_host_public : "";
    /* "ssh-ed25519 AAAA... comment": the first two words. */
    size_t n = strcspn(key, " ");

    n += key[n] ? 1 + strcspn(key + n + 1, " \n") : 0;
    for (uint32_t i = 0; i < a->peer_count; i++) {
        buf_printf(&b, "%s,", a->peers[i].name);
        put_address(&b, a->peers[i].ip);
        buf_printf(&b, " %.*s\n", (int)n, key);
    }
    return buf_take(&b);
}
