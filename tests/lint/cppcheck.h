/* For cppcheck, which does not read the headers of libraries: macros that look like nothing else.
 */
#define json_object_foreach(object, key, value) \
    for (key = json_object_iter_key(json_object_iter(object)); key; key = NULL)
#define json_object_foreach_safe(object, n, key, value) json_object_foreach (object, key, value)
#define json_array_foreach(array, index, value) \
    for (index = 0; index < json_array_size(array) && (value = json_array_get(array, index)); \
         index++)
