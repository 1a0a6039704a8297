/* Random nouns: every member gets a value that its document must carry. */
#include "samples.h"

#include "base/strv.h"

void sample_text(struct prng *p, char *dst, size_t size)
{
    static const char *const bits[] = {"a", "Z", "0", " ", "\"", "\\", "\n", "'", "\x7f",
        "\xc3\xa4", "\xed\x95\x9c", "\xf0\x9f\x8d\x80", "/", "\x01", "{", "="};
    size_t want = prng_below(p, (uint32_t)size), n = 0;

    for (;;) {
        const char *bit = bits[prng_below(p, ARRAY_LEN(bits))];
        size_t len = strlen(bit);

        if (n + len > want)
            break;
        memcpy(dst + n, bit, len);
        n += len;
    }
    dst[n] = '\0';
}

static char *heap_text(struct prng *p)
{
    char text[200];

    if (prng_chance(p, 20))
        return NULL;
    sample_text(p, text, sizeof(text));
    return xstrdup(text);
}

static void sample_name(struct prng *p, char *dst, size_t size)
{
    static const char letters[] = "abcXYZ019";
    size_t n = prng_range(p, 1, (uint32_t)MIN_OF(size - 1, (size_t)NAME_MAX_LEN));

    for (size_t i = 0; i < n; i++)
        dst[i] = letters[prng_below(p, sizeof(letters) - 1)];
    dst[n] = '\0';
}

static void sample_path(struct prng *p, char *dst, size_t size)
{
    char name[NAME_MAX_LEN + 1];

    sample_name(p, name, sizeof(name));
    snprintf(dst, size, "/mnt/%s", name);
}

static void sample_address(struct prng *p, char *dst, size_t size)
{
    if (prng_chance(p, 50))
        snprintf(dst, size, "10.%u.0.%u", prng_below(p, 256), prng_below(p, 256));
    else
        snprintf(dst, size, "fd00::%x", prng_range(p, 1, 0xffff));
}

static void sample_digest(struct prng *p, char *dst, size_t size)
{
    snprintf(dst, size, "sha256:%016jx%016jx%016jx%016jx", (uintmax_t)prng_next(p),
        (uintmax_t)prng_next(p), (uintmax_t)prng_next(p), (uintmax_t)prng_next(p));
}

static uint64_t sample_usec(struct prng *p)
{
    return prng_chance(p, 30) ? 0 : prng_next(p) >> 1;
}

static char **sample_strv(struct prng *p, bool variables)
{
    char **v = NULL;
    char text[100];

    for (uint32_t n = prng_below(p, 5); n > 0; n--) {
        sample_text(p, text, sizeof(text));
        strv_pushf(&v, variables ? "V%u=%s" : "%u%s", n, text);
    }
    return v;
}

static struct resources sample_resources(struct prng *p, uint32_t gpus)
{
    return (struct resources){
        .cpu_milli = (uint32_t)prng_next(p), .gpus = gpus, .mem = prng_next(p) >> 5};
}

static uint32_t *sample_gpus(struct prng *p, uint32_t count, uint32_t *next)
{
    uint32_t *v = xnew_array(uint32_t, count);

    for (uint32_t i = 0; i < count; i++)
        v[i] = (*next)++;
    return v;
}

static void sample_container(struct prng *p, struct container *c)
{
    uint32_t first = prng_below(p, 8);

    if (prng_chance(p, 70))
        sample_name(p, c->node, sizeof(c->node));
    c->gpu_count = prng_below(p, 9);
    c->gpus = c->gpu_count ? sample_gpus(p, c->gpu_count, &first) : NULL;
    c->ip = (uint32_t)prng_next(p);
    c->state = (enum container_state)prng_below(p, CONTAINER_STATE_COUNT);
    c->end = (enum container_end)prng_below(p, END_COUNT);
    c->exit_code = (int)prng_next(p);
    c->started_usec = sample_usec(p);
    c->ended_usec = sample_usec(p);
    sample_text(p, c->text, sizeof(c->text));
}

static void sample_asked(struct prng *p, struct session *s)
{
    s->kind = (enum session_kind)prng_below(p, KIND_COUNT);
    s->mode = (enum session_mode)prng_below(p, MODE_COUNT);
    s->each = sample_resources(p, prng_below(p, 9));
    if (prng_chance(p, 50))
        sample_name(p, s->gpu_model, sizeof(s->gpu_model));
    s->shm = prng_next(p) >> 5;
    sample_name(p, s->group, sizeof(s->group));
    sample_text(p, s->image, sizeof(s->image));
    sample_digest(p, s->image_id, sizeof(s->image_id));
    s->command = sample_strv(p, false);
    s->env = sample_strv(p, true);
    if (prng_chance(p, 50))
        sample_path(p, s->workdir, sizeof(s->workdir));
    s->mount_count = prng_below(p, 4);
    s->mounts = xnew_array(struct session_mount, s->mount_count);
    for (uint32_t i = 0; i < s->mount_count; i++) {
        sample_name(p, s->mounts[i].volume, sizeof(s->mounts[i].volume));
        sample_path(p, s->mounts[i].path, sizeof(s->mounts[i].path));
        s->mounts[i].read_only = prng_chance(p, 50);
    }
    s->time_limit_usec = sample_usec(p);
    s->grace_usec = sample_usec(p);
    s->on = (enum session_on)prng_below(p, ON_COUNT);
    s->on_failure = (enum session_on_failure)prng_below(p, FAIL_COUNT);
    for (uint32_t i = prng_below(p, 3); i > 0; i--)
        strv_pushf(&s->depends, "afterok:%u", i);
    sample_name(p, s->account, sizeof(s->account));
    s->qos = (enum session_qos)prng_below(p, QOS_COUNT);
    s->retry_max = prng_below(p, 5);
    s->retry_on = prng_below(p, 8);
    s->retried = prng_below(p, 5);
    s->spot = prng_chance(p, 50);
    s->requeue = prng_chance(p, 50);
    s->claimed_usec = prng_below(p, 1000);
    s->leaves_for = prng_below(p, 1000);
    s->preempt_at_usec = prng_below(p, 1000);
    s->estimate_usec = prng_below(p, 1000);
    s->switches = prng_below(p, 4);
    s->switch_wait_usec = prng_below(p, 1000);
    s->nice = (int)prng_below(p, 2000) - 1000;
    s->begin_usec = sample_usec(p);
    s->finish_usec = sample_usec(p);
    s->hold = (enum session_hold)prng_below(p, HOLD_COUNT);
}

static void sample_course(struct prng *p, struct session *s)
{
    s->state = (enum session_state)prng_below(p, SESSION_STATE_COUNT);
    s->result = (enum session_result)prng_below(p, RESULT_COUNT);
    s->attempt = (uint32_t)prng_next(p);
    sample_text(p, s->reason_code, sizeof(s->reason_code));
    sample_text(p, s->reason, sizeof(s->reason));
    s->submitted_usec = sample_usec(p);
    s->placed_usec = sample_usec(p);
    s->started_usec = sample_usec(p);
    s->ended_usec = sample_usec(p);
    s->state_usec = sample_usec(p);
    s->deadline_usec = sample_usec(p);
    s->exit_code = (int)prng_next(p);
    s->placed_mode = (enum session_mode)prng_below(p, MODE_COUNT);
}

struct session *sample_session(struct prng *p)
{
    struct session *s = session_new();

    uuid_make(s->id);
    s->num = prng_next(p) >> 1;
    sample_name(p, s->name, sizeof(s->name));
    sample_name(p, s->owner, sizeof(s->owner));
    s->size = prng_range(p, 1, 12);
    sample_asked(p, s);
    sample_course(p, s);
    session_make_containers(s);
    for (uint32_t i = 0; i < s->size; i++)
        sample_container(p, &s->containers[i]);
    s->ssh_private = heap_text(p);
    s->ssh_public = heap_text(p);
    s->ssh_host_private = heap_text(p);
    s->ssh_host_public = heap_text(p);
    s->vni = prng_below(p, 1 << 24);
    s->subnet = (uint32_t)prng_next(p);
    s->master_port = (uint16_t)prng_next(p);
    return s;
}

static void sample_peers(struct prng *p, struct assignment *a)
{
    a->peer_count = prng_range(p, 1, 12);
    a->peers = xnew_array(struct assigned_peer, a->peer_count);
    for (uint32_t i = 0; i < a->peer_count; i++) {
        container_name_make(i, a->peers[i].name);
        a->peers[i].ip = a->subnet + 2 + i;
        sample_name(p, a->peers[i].node, sizeof(a->peers[i].node));
        sample_address(p, a->peers[i].fabric, sizeof(a->peers[i].fabric));
    }
}

/* Those on this node: every other one of the peers or so. */
static void sample_containers(struct prng *p, struct assignment *a)
{
    uint32_t gpu = 0;

    a->containers = xnew_array(struct assigned_container, a->peer_count);
    for (uint32_t rank = 0; rank < a->peer_count; rank++) {
        struct assigned_container *c = &a->containers[a->container_count];

        if (prng_chance(p, 50))
            continue;
        a->container_count++;
        uuid_make(c->id);
        c->rank = rank;
        container_name_make(rank, c->name);
        c->gpu_count = a->each.gpus;
        c->gpus = sample_gpus(p, c->gpu_count, &gpu);
        c->env = sample_strv(p, true);
        c->command = sample_strv(p, false);
    }
}

static void sample_files(struct prng *p, struct assignment *a)
{
    char text[100];

    a->mount_count = prng_below(p, 4);
    a->mounts = xnew_array(struct assigned_mount, a->mount_count);
    for (uint32_t i = 0; i < a->mount_count; i++) {
        sample_path(p, text, sizeof(text));
        a->mounts[i].source = xstrdup(text);
        sample_path(p, text, sizeof(text));
        a->mounts[i].target = xstrdup(text);
        a->mounts[i].read_only = prng_chance(p, 50);
    }
    sample_digest(p, a->image_id, sizeof(a->image_id));
    a->layer_count = prng_range(p, 1, 5);
    a->layers = xnew_array(struct assigned_layer, a->layer_count);
    for (uint32_t i = 0; i < a->layer_count; i++) {
        sample_digest(p, a->layers[i].digest, sizeof(a->layers[i].digest));
        a->layers[i].size = prng_next(p) >> 5;
    }
}

struct assignment *sample_assignment(struct prng *p)
{
    struct assignment *a = xnew(struct assignment);

    uuid_make(a->cluster);
    a->epoch = prng_next(p) >> 1;
    STR_SET(a->incarnation, a->cluster);
    a->revision = a->epoch / 2;
    uuid_make(a->boot_id);
    uuid_make(a->session);
    a->num = prng_next(p) >> 1;
    a->attempt = (uint32_t)prng_next(p);
    a->phase = (enum phase)prng_below(p, PHASE_COUNT);
    sample_text(p, a->stop_reason, sizeof(a->stop_reason));
    a->kill_now = prng_chance(p, 50);
    sample_name(p, a->user.name, sizeof(a->user.name));
    a->user.role = (enum role)prng_range(p, 1, ROLE_COUNT - 1);
    assert(user_assign(&a->user, prng_below(p, 1000), NULL) == 0);
    a->kind = (enum session_kind)prng_below(p, KIND_COUNT);
    a->each = sample_resources(p, prng_below(p, 5));
    a->shm = prng_next(p) >> 5;
    a->grace_usec = prng_below(p, 3600 * 1000) * UINT64_C(1000);
    a->stop_signal = prng_range(p, 1, 64);
    if (prng_chance(p, 50))
        sample_path(p, a->workdir, sizeof(a->workdir));
    sample_files(p, a);
    a->subnet = (uint32_t)prng_next(p) & 0xfffffc00;
    a->vni = prng_below(p, 1 << 24);
    sample_peers(p, a);
    a->ssh_private = heap_text(p);
    a->ssh_host_public = heap_text(p);
    a->hosts = heap_text(p);
    a->hostfile = heap_text(p);
    sample_containers(p, a);
    return a;
}

void sample_report(struct prng *p, struct report *r)
{
    uuid_make(r->session);
    uuid_make(r->container);
    container_name_make(prng_below(p, 20), r->name);
    r->attempt = (uint32_t)prng_next(p);
    r->state = (enum container_state)prng_below(p, CONTAINER_STATE_COUNT);
    r->end = (enum container_end)prng_below(p, END_COUNT);
    r->exit_code = (int)prng_next(p);
    r->started_usec = sample_usec(p);
    r->ended_usec = sample_usec(p);
    sample_text(p, r->text, sizeof(r->text));
}

static void sample_inventory(struct prng *p, struct link_hello *h)
{
    h->inventory_count = prng_below(p, 4);
    h->inventory = xnew_array(struct link_session, h->inventory_count);
    for (uint32_t i = 0; i < h->inventory_count; i++) {
        struct link_session *s = &h->inventory[i];

        uuid_make(s->session);
        s->attempt = (uint32_t)prng_next(p);
        s->phase = (enum phase)prng_below(p, PHASE_COUNT);
        uuid_make(s->cluster);
        s->epoch = prng_next(p) >> 1;
        STR_SET(s->incarnation, s->cluster);
        s->revision = s->epoch / 2;
        s->container_count = prng_below(p, 4);
        s->containers = xnew_array(struct report, s->container_count);
        for (uint32_t k = 0; k < s->container_count; k++)
            sample_report(p, &s->containers[k]);
    }
}

static void sample_hello(struct prng *p, struct link_hello *h)
{
    sample_text(p, h->version, sizeof(h->version));
    sample_name(p, h->node, sizeof(h->node));
    if (prng_chance(p, 50))
        uuid_make(h->cluster);
    h->seen_epoch = prng_next(p) >> 1;
    uuid_make(h->boot_id);
    h->capacity = sample_resources(p, prng_below(p, 9));
    h->gpus = xnew_array(struct gpu, h->capacity.gpus);
    for (uint32_t i = 0; i < h->capacity.gpus; i++) {
        h->gpus[i].index = i;
        sample_name(p, h->gpus[i].model, sizeof(h->gpus[i].model));
        sample_text(p, h->gpus[i].uuid, sizeof(h->gpus[i].uuid));
        h->gpus[i].mem = prng_next(p) >> 5;
        h->gpus[i].healthy = prng_chance(p, 50);
    }
    sample_address(p, h->addr_mgmt, sizeof(h->addr_mgmt));
    sample_address(p, h->addr_fabric, sizeof(h->addr_fabric));
    h->fabric_mtu = prng_range(p, 1280, 9000);
    sample_inventory(p, h);
}

static void sample_welcome(struct prng *p, struct link_welcome *w)
{
    uuid_make(w->cluster);
    w->epoch = prng_next(p) >> 1;
    w->heartbeat_usec = 2000000;
    w->fence_usec = prng_range(p, 1000, 1000000000);
    for (uint32_t n = prng_below(p, 4); n > 0; n--) {
        char text[64];

        sample_address(p, text, sizeof(text));
        strv_push(&w->peers, text);
        strv_pushf(&w->blocked, "%s/%u", text, prng_below(p, 33));
    }
}

static void sample_stream(struct prng *p, struct link_stream *s)
{
    uuid_make(s->id);
    s->kind = (enum stream_kind)prng_below(p, STREAM_COUNT);
    uuid_make(s->container);
    s->command = sample_strv(p, false);
    if (prng_chance(p, 50))
        sample_path(p, s->workdir, sizeof(s->workdir));
    s->root = prng_chance(p, 50);
    s->tty = prng_chance(p, 50);
    s->rows = (uint16_t)prng_next(p);
    s->cols = (uint16_t)prng_next(p);
    s->offset = prng_next(p) >> 5;
    s->since_usec = sample_usec(p);
    s->follow = prng_chance(p, 50);
    s->timestamps = prng_chance(p, 50);
    s->port = (uint16_t)prng_range(p, 1, 65535);
}

void sample_message(struct prng *p, enum link_type type, struct link_message *m)
{
    *m = (struct link_message){.type = type};
    switch (type) {
    case LINK_HELLO:
        sample_hello(p, &m->hello);
        break;
    case LINK_REPORT:
        sample_report(p, &m->report);
        break;
    case LINK_SESSION_REMOVED:
        uuid_make(m->removed.session);
        m->removed.attempt = (uint32_t)prng_next(p);
        break;
    case LINK_IMAGE_PROGRESS:
        sample_digest(p, m->image.image_id, sizeof(m->image.image_id));
        m->image.state = (enum image_state)prng_below(p, IMAGE_STATE_COUNT);
        m->image.done = prng_next(p) >> 5;
        m->image.total = prng_next(p) >> 5;
        sample_text(p, m->image.text, sizeof(m->image.text));
        break;
    case LINK_WELCOME:
        sample_welcome(p, &m->welcome);
        break;
    case LINK_ASSIGN:
        m->assignment = sample_assignment(p);
        break;
    case LINK_REMOVE:
    case LINK_QUARANTINE:
        uuid_make(m->order.cluster);
        m->order.epoch = prng_next(p) >> 1;
        uuid_make(m->order.session);
        break;
    case LINK_OPEN_STREAM:
        sample_stream(p, &m->stream);
        break;
    case LINK_PING:
    case LINK_PONG:
        m->ping.seq = prng_next(p) >> 1;
        break;
    case LINK_TYPE_COUNT:
        abort();
    }
}
