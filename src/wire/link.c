/*
 * The link's messages: a row a type says who may send it, what is in it, and what has to agree in
 * it. All but an assignment lie in the union itself.
 */
#include "wire/link.h"

#include "model/ip.h"
#include "wire/tables.h"

#define DAY_USEC (UINT64_C(86400) * 1000000)

WORDS_DEFINE(link_type, enum link_type, "hello", "report", "session_removed", "image_progress",
    "pong", "welcome", "assign", "remove", "quarantine", "open_stream", "ping")

WORDS_DEFINE(image_state, enum image_state, "fetching", "ready", "failed")

static const char *const stream_list[] = {"exec", "log", "tcp"};
static const struct words stream_words = {stream_list, ARRAY_LEN(stream_list)};

static const struct field session_fields[] = {
    F_UUID(struct link_session, session),
    F_U32(struct link_session, attempt, UINT32_MAX),
    F_WORD(struct link_session, phase, phase_words),
    F_UUID(struct link_session, cluster),
    F_U64(struct link_session, epoch, INT64_MAX),
    F_UUID(struct link_session, incarnation),
    F_U64(struct link_session, revision, INT64_MAX),
    F_STRUCT(struct link_session, held, resources_fields),
    F_INDEXES(struct link_session, gpus, gpu_count, NODE_GPUS_MAX),
    F_LIST(struct link_session, containers, container_count, report_fields, SESSION_SIZE_MAX),
    F_END,
};

static const struct field hello_fields[] = {
    F_TEXT(struct link_hello, version),
    F_NAME(struct link_hello, node),
    F_UUID(struct link_hello, cluster, .empty_ok = true),
    F_U64(struct link_hello, seen_epoch, INT64_MAX),
    F_UUID(struct link_hello, boot_id),
    F_U32(struct link_hello, capacity.cpu_milli, UINT32_MAX),
    F_U64(struct link_hello, capacity.mem, BYTES_MAX),
    F_LIST(struct link_hello, gpus, capacity.gpus, gpu_fields, NODE_GPUS_MAX),
    F_ADDRESS(struct link_hello, addr_mgmt),
    F_ADDRESS(struct link_hello, addr_fabric),
    F_U32(struct link_hello, fabric_mtu, UINT16_MAX, .min = 576),
    F_LIST(struct link_hello, inventory, inventory_count, session_fields, LINK_INVENTORY_MAX),
    F_END,
};

static const struct field report_message_fields[] = {
    {.key = "report", .type = FIELD_STRUCT, .fields = report_fields},
    F_END,
};

static const struct field removed_fields[] = {
    F_UUID(struct link_removed, session),
    F_U32(struct link_removed, attempt, UINT32_MAX),
    F_END,
};

static const struct field image_fields[] = {
    F_TEXT(struct link_image, image_id),
    F_WORD(struct link_image, state, image_state_words),
    F_U64(struct link_image, done, BYTES_MAX),
    F_U64(struct link_image, total, BYTES_MAX),
    F_TEXT(struct link_image, text),
    F_END,
};

static const struct field ping_fields[] = {
    F_U64(struct link_ping, seq, INT64_MAX),
    F_END,
};

static const struct field welcome_fields[] = {
    F_UUID(struct link_welcome, cluster),
    F_U64(struct link_welcome, epoch, INT64_MAX),
    F_U64(struct link_welcome, heartbeat_usec, DAY_USEC, .min = 1000),
    F_U64(struct link_welcome, fence_usec, 365 * DAY_USEC, .min = 1000),
    F_STRV(struct link_welcome, peers, LINK_PEERS_MAX),
    F_STRV(struct link_welcome, blocked, LINK_PEERS_MAX),
    F_END,
};

static const struct field order_fields[] = {
    F_UUID(struct link_session_order, cluster),
    F_U64(struct link_session_order, epoch, INT64_MAX),
    F_UUID(struct link_session_order, session),
    F_END,
};

static const struct field stream_fields[] = {
    F_UUID(struct link_stream, id),
    F_WORD(struct link_stream, kind, stream_words),
    F_UUID(struct link_stream, container),
    F_STRV(struct link_stream, command, SESSION_COMMAND_MAX),
    F_STRV(struct link_stream, env, SESSION_ENV_MAX),
    F_PATH(struct link_stream, workdir, .empty_ok = true),
    F_BOOL(struct link_stream, root),
    F_BOOL(struct link_stream, tty),
    F_U16(struct link_stream, rows),
    F_U16(struct link_stream, cols),
    F_U64(struct link_stream, offset, BYTES_MAX),
    F_U64(struct link_stream, since_usec, USEC_MAX),
    F_BOOL(struct link_stream, follow),
    F_BOOL(struct link_stream, timestamps),
    F_U16(struct link_stream, port),
    F_END,
};

/* Two GPUs of one index would be given away as one. */
static int check_hello(const struct link_message *m, struct err *err)
{
    uint64_t seen = 0;

    for (uint32_t i = 0; i < m->hello.capacity.gpus; i++) {
        uint64_t bit = UINT64_C(1) << m->hello.gpus[i].index;

        if (seen & bit)
            return err_set(
                err, -EINVAL, "gpus[%u]: 'index' %u is taken", i, m->hello.gpus[i].index);
        seen |= bit;
    }
    return 0;
}

static int check_each(
    char *const *v, bool (*is_valid)(const char *text), const char *what, struct err *err)
{
    for (size_t i = 0; v && v[i]; i++)
        if (!is_valid(v[i]))
            return err_set(err, -EINVAL, "%s[%zu]: not valid", what, i);
    return 0;
}

static int check_welcome(const struct link_message *m, struct err *err)
{
    int r = check_each(m->welcome.peers, ip_is_valid, "peers", err);

    return r < 0 ? r : check_each(m->welcome.blocked, cidr_is_valid, "blocked", err);
}

static int check_stream(const struct link_message *m, struct err *err)
{
    if (m->stream.command && str_is_empty(m->stream.command[0]))
        return err_set(err, -EINVAL, "'command' must be null or begin with a program");
    if (m->stream.kind == STREAM_TCP && m->stream.port == 0)
        return err_set(err, -EINVAL, "'port' must be a whole number from 1 to 65535");
    return 0;
}

struct row {
    enum link_side from;
    size_t offset;              /* of its member in struct link_message */
    const struct field *fields; /* NULL: an assignment */
    int (*check)(const struct link_message *m, struct err *err);
};

#define AT(member) offsetof(struct link_message, member)

static const struct row rows[LINK_TYPE_COUNT] = {
    /* clang-format off */
    [LINK_HELLO]           = {LINK_AGENT,   AT(hello),   hello_fields, check_hello},
    [LINK_REPORT]          = {LINK_AGENT,   AT(report),  report_message_fields},
    [LINK_SESSION_REMOVED] = {LINK_AGENT,   AT(removed), removed_fields},
    [LINK_IMAGE_PROGRESS]  = {LINK_AGENT,   AT(image),   image_fields},
    [LINK_PONG]            = {LINK_AGENT,   AT(ping),    ping_fields},
    [LINK_WELCOME]         = {LINK_MANAGER, AT(welcome), welcome_fields, check_welcome},
    [LINK_ASSIGN]          = {LINK_MANAGER, AT(assignment)},
    [LINK_REMOVE]          = {LINK_MANAGER, AT(order),   order_fields},
    [LINK_QUARANTINE]      = {LINK_MANAGER, AT(order),   order_fields},
    [LINK_OPEN_STREAM]     = {LINK_MANAGER, AT(stream),  stream_fields, check_stream},
    [LINK_PING]            = {LINK_MANAGER, AT(ping),    ping_fields},
    /* clang-format on */
};

static int read_type(const json_t *doc, enum link_side from, enum link_type *ret, struct err *err)
{
    _cleanup_free_ char *shown = NULL;
    const char *word = NULL;
    int r = json_get_str(doc, "type", &word, err);

    if (r < 0)
        return r == -ENOENT ? -EINVAL : r;
    if (link_type_parse(word, ret) < 0) {
        shown = str_escape(word, strlen(word), 40);
        return err_set(err, -EINVAL, "unknown message type '%s'", shown);
    }
    if (rows[*ret].from != from)
        return err_set(err, -EINVAL, "%s does not send '%s'",
            from == LINK_AGENT ? "an agent" : "a manager", word);
    return 0;
}

static int read_message(const json_t *doc, struct link_message *m, struct err *err)
{
    const struct row *row = &rows[m->type];
    json_t *order = NULL;
    int r;

    if (!row->fields) {
        r = json_get_obj(doc, "assignment", &order, err);
        return r < 0 ? r : assignment_from_json(order, &m->assignment, err);
    }
    r = fields_read(row->fields, doc, (char *)m + row->offset, err);
    return r >= 0 && row->check ? row->check(m, err) : r;
}

int link_parse(
    const char *text, size_t len, enum link_side from, struct link_message **ret, struct err *err)
{
    _cleanup_(link_message_freep) struct link_message *m = NULL;
    _cleanup_(json_decrefp) json_t *doc = NULL;
    enum link_type type = LINK_TYPE_COUNT;
    int r;

    r = json_parse(text, len, LINK_TEXT_MAX, &doc, err);
    if (r < 0)
        return r;
    r = read_type(doc, from, &type, err);
    if (r < 0)
        return r;
    m = xnew(struct link_message);
    m->type = type;
    r = read_message(doc, m, err);
    if (r < 0) {
        err_prefix(err, "'%s'", link_type_name(type));
        return -EINVAL;
    }
    *ret = TAKE_PTR(m);
    return 0;
}

char *link_text(const struct link_message *m)
{
    _cleanup_(json_decrefp) json_t *doc = json_object();
    const struct row *row = &rows[m->type];

    json_set_str(doc, "type", link_type_name(m->type));
    if (row->fields)
        fields_write(row->fields, (const char *)m + row->offset, doc);
    else
        json_object_set_new(doc, "assignment", assignment_to_json(m->assignment));
    return json_text(doc);
}

void link_message_done(struct link_message *m)
{
    const struct row *row = &rows[m->type];

    if (row->fields)
        fields_done(row->fields, (char *)m + row->offset);
    else
        assignment_free(TAKE_PTR(m->assignment));
}

void link_message_free(struct link_message *m)
{
    if (!m)
        return;
    link_message_done(m);
    free(m);
}

void link_message_freep(struct link_message **m)
{
    link_message_free(*m);
}
