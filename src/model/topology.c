/* Reads a topology line by line into two maps. A text with a mistake anywhere gives nothing. */
#include "model/topology.h"

#include "base/strv.h"

static void init(struct topology *t)
{
    map_init(&t->leaves);
    map_init(&t->spines);
}

void topology_done(struct topology *t)
{
    map_done(&t->leaves, free);
    map_done(&t->spines, free);
    *t = (struct topology){0};
}

const char *topology_leaf(const struct topology *t, const char *node)
{
    const char *leaf = map_get(&t->leaves, node);

    return leaf ? leaf : "";
}

const char *topology_spine(const struct topology *t, const char *leaf)
{
    const char *spine = map_get(&t->spines, leaf);

    return spine ? spine : "";
}

struct children { /* of one switch */
    struct map *map;
    const char *name;
    const char *what; /* "node", "switch" */
};

static int add_child(const char *name, void *arg, struct err *err)
{
    const struct children *c = arg;
    const char *other = map_get(c->map, name);
    int r = name_check(c->what, name, err);

    if (r < 0)
        return r;
    if (other)
        return err_set(
            err, -EINVAL, "%s '%s' is below both '%s' and '%s'", c->what, name, other, c->name);
    if (map_count(c->map) >= TOPOLOGY_NAMES_MAX)
        return err_set(err, -E2BIG, "more than %d names", TOPOLOGY_NAMES_MAX);
    map_set(c->map, name, xstrdup(c->name));
    return 0;
}

/* "Key=Value": the value if the key is that, in any case. */
static const char *value_of(const char *word, const char *key)
{
    size_t len = strlen(key);

    return strncasecmp(word, key, len) == 0 && word[len] == '=' ? word + len + 1 : NULL;
}

static int parse_switch(struct topology *t, char *const *words, struct err *err)
{
    const char *name = value_of(words[0], "SwitchName"), *nodes = NULL, *switches = NULL;
    struct children below_nodes = {&t->leaves, name, "node"};
    struct children below_switches = {&t->spines, name, "switch"};
    int r;

    if (!name)
        return err_set(err, -EINVAL, "must begin with SwitchName=NAME");
    r = name_check("a switch", name, err);
    for (char *const *w = words + 1; *w; w++) {
        nodes = value_of(*w, "Nodes") ? value_of(*w, "Nodes") : nodes;
        switches = value_of(*w, "Switches") ? value_of(*w, "Switches") : switches;
    }
    if (r == 0 && !nodes && !switches)
        return err_set(err, -EINVAL, "switch '%s' has neither Nodes= nor Switches=", name);
    if (r == 0 && nodes)
        r = hostlist_each(nodes, TOPOLOGY_NAMES_MAX, add_child, &below_nodes, err);
    if (r == 0 && switches)
        r = hostlist_each(switches, TOPOLOGY_NAMES_MAX, add_child, &below_switches, err);
    return r;
}

static int parse_line(struct topology *t, const char *line, struct err *err)
{
    _cleanup_free_ char *text = xstrndup(line, strcspn(line, "#"));
    _cleanup_(strv_freep) char **words = NULL;
    char *rest = text;

    for (char *word; (word = strsep(&rest, " \t\r"));)
        if (*word)
            strv_push(&words, word);
    return words ? parse_switch(t, words, err) : 0;
}

int topology_parse(const char *text, struct topology *ret, struct err *err)
{
    _cleanup_(strv_freep) char **lines = NULL;
    unsigned number = 0;

    init(ret);
    if (strlen(text) > TOPOLOGY_TEXT_MAX)
        return err_set(err, -E2BIG, "the text has more than %d bytes", TOPOLOGY_TEXT_MAX);
    lines = strv_split(text, '\n');
    strv_for_each (line, lines) {
        int r;

        number++;
        r = parse_line(ret, *line, err);
        if (r < 0) {
            topology_done(ret);
            return err_prefix(err, "line %u", number);
        }
    }
    return 0;
}
