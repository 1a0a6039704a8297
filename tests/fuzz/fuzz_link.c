/*
 * Link messages from an attacker: the first byte says from which side. What is taken must go out
 * and come in again unchanged.
 */
#include "wire/link.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_again(const struct link_message *m, enum link_side from)
{
    _cleanup_(link_message_freep) struct link_message *back = NULL;
    _cleanup_free_ char *text = link_text(m), *again = NULL;
    struct err err = ERR_INIT;

    if (link_parse(text, strlen(text), from, &back, &err) < 0) {
        fprintf(stderr, "%s\n%s\n", err_text(&err), text);
        abort();
    }
    again = link_text(back);
    if (strcmp(text, again) != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_(link_message_freep) struct link_message *m = NULL;
    struct err err = ERR_INIT;
    enum link_side from;

    if (size == 0)
        return 0;
    from = data[0] == 'a' ? LINK_AGENT : LINK_MANAGER;
    if (link_parse((const char *)data + 1, size - 1, from, &m, &err) < 0) {
        if (!err.text[0])
            abort(); /* every refusal says why */
        return 0;
    }
    check_again(m, from);
    return 0;
}
