/* SESSION/CONTAINER. What a session is called the manager checks; a container's name is ours. */
#include "cli/ref.h"

#include "base/str.h"

#define SESSION_TEXT_MAX 63

static bool is_container(const char *name)
{
    uint64_t n;

    if (str_eq(name, "main1"))
        return true;
    return str_starts(name, "sub") && name[3] != '0' && str_to_u64(name + 3, 999, &n) == 0 && n > 0;
}

int ref_parse(const char *text, struct ref *ret, struct err *err)
{
    const char *slash = strchr(text, '/');
    size_t len = slash ? (size_t)(slash - text) : strlen(text);

    if (len == 0 || len > SESSION_TEXT_MAX)
        return err_set(err, -EINVAL,
            "'%.80s' names no session: give its name, number, or the beginning of its id", text);
    if (slash && !is_container(slash + 1))
        return err_set(err, -EINVAL,
            "'%.40s' is no container: they are called main1, sub1, sub2, ...", slash + 1);
    *ret = (struct ref){.session = xstrndup(text, len), .has_container = slash != NULL};
    STR_SET(ret->container, slash ? slash + 1 : "main1");
    return 0;
}

void ref_done(struct ref *r)
{
    free(r->session);
    r->session = NULL;
}
