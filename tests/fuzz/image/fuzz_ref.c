/* Image references from users. A normal form is its own normal form, and the path that is
 * asked for it in a URL holds nothing but the characters of a reference. */
#include "image/ref.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char normal[IMAGE_REF_MAX + 1], again[IMAGE_REF_MAX + 1];
    _cleanup_free_ char *text = xstrndup((const char *)data, size), *path = NULL;
    struct err err = ERR_INIT;
    struct image_ref ref;

    if (image_ref_normal(text, normal, &err) < 0) {
        if (!err.text[0] || !str_is_clean(err.text, strlen(err.text)))
            abort();
        return 0;
    }
    if (image_ref_normal(normal, again, &err) < 0 || !str_eq(normal, again))
        abort();
    if (image_ref_parse(normal, &ref, &err) < 0)
        abort();
    path = image_ref_path(&ref);
    if (strpbrk(path, " \t\n\"'\\$`;&|<>(){}*?!~,%#@:") || strstr(path, ".."))
        abort();
    return 0;
}
