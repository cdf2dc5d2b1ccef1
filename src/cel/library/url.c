#include "cel/library/url.h"

#include "cel/library/go_url.h"
#include "cel/value/container.h"

enum { PARAMETERS_MAX = 10000 /* Go reads none of a query that has more */ };

struct url {
    struct cel_opaque opaque;
    struct go_url parts;
};

static bool urls_equal(struct cel_work *work, const struct cel_opaque *a,
                       const struct cel_opaque *b, bool *ret_equal);

static const struct cel_opaque_ops url_ops = {
    .type = &cel_type_KUBERNETES_URL, .go_type = "cel.URL", .equal = urls_equal};

static const struct url *as_url(struct cel_value value)
{
    return cel_is_opaque(value, &url_ops) ? (const struct url *)value.opaque : NULL;
}

static bool urls_equal(struct cel_work *work, const struct cel_opaque *a,
                       const struct cel_opaque *b, bool *ret_equal)
{
    if (a->ops != b->ops)
        return false;
    struct cel_value x = go_url_write(work, &((const struct url *)a)->parts);
    struct cel_value y = go_url_write(work, &((const struct url *)b)->parts);
    *ret_equal = slice_equal(cel_text(x), cel_text(y));
    return true;
}

static struct cel_value to_url(struct cel_work *work, const struct cel_value *args)
{
    struct cel_value error;
    if (args[0].kind != CEL_STRING)
        return CEL_NO_OVERLOAD;
    struct url *url = arena_calloc(work->arena, 1, sizeof(*url));
    if (!url)
        return CEL_NO_MEMORY;
    url->opaque.ops = &url_ops;
    /* Kubernetes checks a URL like that of a request, but then reads it with its fragment. */
    if (go_url_read(work, cel_text(args[0]), true, &url->parts, &error) &&
        go_url_read(work, cel_text(args[0]), false, &url->parts, &error))
        return cel_of_opaque(&url->opaque);
    return cel_of_error_format(work, "URL parse error during conversion from string: %.*s",
                               SLICE_ARGS(cel_text(error)));
}

static struct cel_value is_url(struct cel_work *work, const struct cel_value *args)
{
    struct go_url parts;
    struct cel_value error;
    if (args[0].kind != CEL_STRING)
        return CEL_NO_OVERLOAD;
    return cel_of_bool(go_url_read(work, cel_text(args[0]), true, &parts, &error));
}

static struct cel_value get_scheme(struct cel_work *work, const struct cel_value *args)
{
    (void)work;
    const struct url *url = as_url(args[0]);
    return url ? cel_of_string(url->parts.scheme) : CEL_NO_OVERLOAD;
}

static struct cel_value get_host(struct cel_work *work, const struct cel_value *args)
{
    (void)work;
    const struct url *url = as_url(args[0]);
    return url ? cel_of_string(url->parts.host) : CEL_NO_OVERLOAD;
}

static struct cel_value get_hostname(struct cel_work *work, const struct cel_value *args)
{
    (void)work;
    const struct url *url = as_url(args[0]);
    return url ? cel_of_string(go_url_hostname(&url->parts)) : CEL_NO_OVERLOAD;
}

static struct cel_value get_port(struct cel_work *work, const struct cel_value *args)
{
    (void)work;
    const struct url *url = as_url(args[0]);
    return url ? cel_of_string(go_url_port(&url->parts)) : CEL_NO_OVERLOAD;
}

static struct cel_value get_escaped_path(struct cel_work *work, const struct cel_value *args)
{
    const struct url *url = as_url(args[0]);
    return url ? go_url_escaped_path(work, &url->parts) : CEL_NO_OVERLOAD;
}

/* -- Queries -- */

static size_t count_of(struct slice text, uint8_t byte)
{
    size_t count = 0;
    for (size_t i = 0; i < text.len; i++)
        count += text.ptr[i] == byte;
    return count;
}

/* The map with one more value of a key. Lists of values are shared with the map, so that they grow
 * in place. */
static struct cel_value add_parameter(struct cel_work *work, struct cel_value map, struct slice key,
                                      struct slice value)
{
    struct cel_value list, name = cel_of_string(key);
    bool found = cel_map_find(work, map, name, &list);
    if (!found)
        list = cel_list_new(work, 1);
    if (!cel_is_error(list))
        list = cel_list_append(work, list, cel_of_string(value));
    if (cel_is_error(list))
        return list;
    if (!found)
        return cel_map_insert(work, map, name, list);
    for (uint32_t i = 0; i < map.count; i++)
        if (slice_equal(cel_text(map.entries->pairs[2 * (size_t)i]), key))
            map.entries->pairs[2 * (size_t)i + 1] = list;
    return map;
}

static struct cel_value get_query(struct cel_work *work, const struct cel_value *args)
{
    const struct url *url = as_url(args[0]);
    if (!url)
        return CEL_NO_OVERLOAD;
    struct slice rest = url->parts.query, key, value;
    struct cel_value map = cel_map_new(work, 0);
    if (count_of(rest, '&') + 1 > PARAMETERS_MAX)
        return map;
    while (rest.len && !cel_is_error(map) && work->steps_left >= 0) {
        struct slice setting = slice_cut(&rest, '&');
        work->steps_left -= map.count;
        /* Settings that are not valid are ignored. */
        if (!setting.len || memchr(setting.ptr, ';', setting.len))
            continue;
        value = setting;
        key = slice_cut(&value, '=');
        if (go_url_unescape_query(work, key, &key) && go_url_unescape_query(work, value, &value))
            map = add_parameter(work, map, key, value);
    }
    return map;
}

static const struct cel_builtin rows[] = {
    {"getEscapedPath", 1, get_escaped_path, true, 0, NULL},
    {"getHost", 1, get_host, true, 0, NULL},
    {"getHostname", 1, get_hostname, true, 0, NULL},
    {"getPort", 1, get_port, true, 0, NULL},
    {"getQuery", 1, get_query, true, 0, NULL},
    {"getScheme", 1, get_scheme, true, 0, NULL},
    {"isURL", 1, is_url, true, 0, NULL},
    {"url", 1, to_url, true, 0, cel_cost_of_text},
};

const struct cel_library cel_urls = CEL_LIBRARY(rows);
