/* Clusters and queues as text. Test code: bad input stops the program where it is read. */
#include "sim/scenario.h"

#include "base/buf.h"
#include "base/strv.h"

static void bad(const char *word)
{
    fprintf(stderr, "scenario: cannot read '%s'\n", word);
    abort();
}

/* The value of "key=value" if the word is that. */
static const char *value_of(const char *word, const char *key)
{
    size_t n = strlen(key);

    return strncmp(word, key, n) == 0 && word[n] == '=' ? word + n + 1 : NULL;
}

static uint64_t read_number(const char *text)
{
    uint64_t n;

    if (str_to_u64(text, UINT32_MAX, &n) < 0)
        bad(text);
    return n;
}

static uint64_t read_size(const char *text)
{
    uint64_t n;

    if (size_parse(text, &n, NULL) < 0)
        bad(text);
    return n;
}

static uint32_t read_cpus(const char *text)
{
    uint32_t milli;

    if (cpus_parse(text, &milli, NULL) < 0)
        bad(text);
    return milli;
}

static void add_gpus(struct node *n, const char *text)
{
    _cleanup_(strv_freep) char **parts = strv_split(text, '+');

    strv_for_each (part, parts) {
        char *x = strchr(*part, 'x');
        uint32_t count;

        if (!x)
            bad(*part);
        *x = '\0';
        count = (uint32_t)read_number(*part);
        n->gpus = reallocarray(n->gpus, n->capacity.gpus + count, sizeof(*n->gpus));
        for (uint32_t i = 0; i < count; i++) {
            struct gpu *g = &n->gpus[n->capacity.gpus];

            *g = (struct gpu){.index = n->capacity.gpus++, .healthy = true};
            STR_SET(g->model, x + 1);
        }
    }
}

static void set_bad(struct node *n, const char *text)
{
    _cleanup_(strv_freep) char **parts = strv_split(text, '+');

    strv_for_each (part, parts)
        n->gpus[read_number(*part)].healthy = false;
}

/* "CPUS:MEM:GPU+GPU" */
static void set_used(struct sched_withheld *w, const char *text)
{
    _cleanup_(strv_freep) char **parts = strv_split(text, ':');
    _cleanup_(strv_freep) char **gpus = NULL;

    if (strv_len(parts) != 3)
        bad(text);
    w->sum = (struct resources){.cpu_milli = read_cpus(parts[0]), .mem = read_size(parts[1])};
    gpus = strv_split(parts[2], '+');
    w->sum.gpus = (uint32_t)strv_len(gpus);
    strv_for_each (gpu, gpus)
        w->gpus |= UINT64_C(1) << read_number(*gpu);
}

/* Each so many GPUs share a NUMA domain, or are linked. */
static void set_near(struct node *n, uint32_t numa, uint32_t nvlink)
{
    for (uint32_t i = 0; i < n->capacity.gpus; i++) {
        if (numa)
            n->gpus[i].numa = 1 + i / numa;
        if (nvlink)
            n->gpus[i].nvlink = 1 + i / nvlink;
    }
}

static void node_word(struct node *n, const char *word)
{
    const char *v;

    if ((v = value_of(word, "group")))
        STR_SET(n->group, v);
    else if ((v = value_of(word, "numa")))
        set_near(n, (uint32_t)read_number(v), 0);
    else if ((v = value_of(word, "nvlink")))
        set_near(n, 0, (uint32_t)read_number(v));
    else if ((v = value_of(word, "leaf")))
        STR_SET(n->leaf, v);
    else if ((v = value_of(word, "spine")))
        STR_SET(n->spine, v);
    else if ((v = value_of(word, "cpus")))
        n->capacity.cpu_milli = read_cpus(v);
    else if ((v = value_of(word, "mem")))
        n->capacity.mem = read_size(v);
    else if ((v = value_of(word, "gpus")))
        add_gpus(n, v);
    else if ((v = value_of(word, "bad")))
        set_bad(n, v);
    else if ((v = value_of(word, "state"))) {
        if (node_state_parse(v, &n->state) < 0)
            bad(word);
    } else if (str_eq(word, "drained"))
        n->drained = true;
    else if (!value_of(word, "used"))
        bad(word);
}

static void add_node(struct scenario *sc, char **words)
{
    struct node *n = &sc->nodes[sc->node_count];
    struct sched_withheld *w = &sc->withheld[sc->node_count++];

    assert(sc->node_count <= SCENARIO_MAX);
    *n = (struct node){
        .group = "default", .capacity = {.cpu_milli = 8000, .mem = UINT64_C(1) << 35}};
    STR_SET(n->name, words[1]);
    strv_for_each (word, words + 2)
        node_word(n, *word);
    strv_for_each (word, words + 2)
        if (value_of(*word, "used"))
            set_used(w, value_of(*word, "used"));
}

static void session_word(struct session *s, const char *word)
{
    const char *v;

    if ((v = value_of(word, "group")))
        STR_SET(s->group, v);
    else if ((v = value_of(word, "nice")))
        s->nice = (int)read_number(v);
    else if ((v = value_of(word, "switches")))
        s->switches = (uint32_t)read_number(v);
    else if ((v = value_of(word, "cpus")))
        s->each.cpu_milli = read_cpus(v);
    else if ((v = value_of(word, "mem")))
        s->each.mem = read_size(v);
    else if ((v = value_of(word, "gpus")))
        s->each.gpus = (uint32_t)read_number(v);
    else if ((v = value_of(word, "size")))
        s->size = (uint32_t)read_number(v);
    else if ((v = value_of(word, "model")))
        STR_SET(s->gpu_model, v);
    else if (!(v = value_of(word, "mode")) || session_mode_parse(v, &s->mode) < 0)
        bad(word);
}

static void add_session(struct scenario *sc, char **words)
{
    struct session *s = session_new();

    assert(sc->session_count < SCENARIO_MAX);
    sc->sessions[sc->session_count++] = s;
    STR_SET(s->name, words[1]);
    STR_SET(s->id, words[1]);
    STR_SET(s->group, "default");
    s->size = 1;
    s->num = sc->session_count;
    s->submitted_usec = SCENARIO_NOW - 1000000 * (SCENARIO_MAX - s->num);
    s->switch_wait_usec = SESSION_SWITCH_WAIT_USEC;
    s->mode = MODE_MULTI_NODE;
    s->each = (struct resources){.cpu_milli = 1000, .mem = UINT64_C(1) << 30};
    strv_for_each (word, words + 2)
        session_word(s, *word);
}

void scenario_parse(struct scenario *sc, const char *text)
{
    _cleanup_(strv_freep) char **lines = strv_split(text, '\n');

    *sc = (struct scenario){0};
    strv_for_each (line, lines) {
        _cleanup_(strv_freep) char **words = strv_split(*line, ' ');

        if (!words || !words[0][0] || words[0][0] == '#')
            continue;
        if (str_eq(words[0], "node") && words[1])
            add_node(sc, words);
        else if (str_eq(words[0], "session") && words[1])
            add_session(sc, words);
        else
            bad(*line);
    }
}

void scenario_done(struct scenario *sc)
{
    for (size_t i = 0; i < sc->node_count; i++)
        node_done(&sc->nodes[i]);
    for (size_t i = 0; i < sc->session_count; i++)
        session_free(sc->sessions[i]);
}

char *scenario_gpus(uint64_t bits, char text[256])
{
    size_t n = 0;

    text[0] = '\0';
    for (unsigned i = 0; i < 64; i++)
        if (bits & (UINT64_C(1) << i))
            n += (size_t)snprintf(text + n, 256 - n, "%s%u", n ? "," : "", i);
    return text;
}

static void print_start(struct buf *out, const struct session *s, const struct sched_start *start)
{
    char gpus[256], name[16];

    buf_printf(out, "%s goes to", s->name);
    for (uint32_t i = 0; i < start->size; i++) {
        container_name_make(i, name);
        buf_printf(out, " %s=%s", name, start->shares[i].node);
        if (start->shares[i].gpus)
            buf_printf(out, "[%s]", scenario_gpus(start->shares[i].gpus, gpus));
    }
    buf_puts(out, "\n");
}

static const struct sched_start *start_of(const struct sched_result *r, const struct session *s)
{
    for (size_t i = 0; i < r->started_count; i++)
        if (str_eq(r->started[i].session, s->id))
            return &r->started[i];
    return NULL;
}

static void print_decisions(
    struct buf *out, struct scenario *sc, struct sched *sched, const struct sched_result *result)
{
    for (size_t i = 0; i < sc->session_count; i++) {
        const struct session *s = sc->sessions[i];
        const struct sched_start *start = start_of(result, s);
        struct sched_reason why;

        if (start) {
            print_start(out, s, start);
            continue;
        }
        sched_explain(sched, s, &why);
        buf_printf(
            out, "%s waits: %s: %s (largest now: %u)\n", s->name, why.code, why.text, why.largest);
    }
}

char *scenario_decide(struct scenario *sc)
{
    struct buf out = BUF_INIT(1 << 20);
    struct sched_result result;
    struct sched sched;

    sched_init(&sched);
    for (size_t i = 0; i < sc->node_count; i++)
        sched_node_put(&sched, &sc->nodes[i], &sc->withheld[i]);
    for (size_t i = 0; i < sc->session_count; i++)
        sched_session_put(&sched, sc->sessions[i], SCENARIO_NOW);
    sched_run(&sched, SCENARIO_NOW, &result);
    assert(result.started_count + result.news_count == sc->session_count);
    print_decisions(&out, sc, &sched, &result);
    sched_result_done(&result);
    sched_done(&sched);
    return buf_take(&out);
}
