#include "kube/webhook/target.h"

#include "cel/library/go_url.h"
#include "cel/value/work.h"
#include "client/names/endpoint.h"
#include "codec/base64.h"
#include "codec/go_address.h"
#include "wire/http/field.h"

#include <stdio.h>

enum { PORT_HTTPS = 443 };

/* -- Texts; false: no memory -- */

static bool read_text(struct arena *arena, const struct json_node *object, const char *name,
                      struct slice *ret_text)
{
    struct slice text = SLICE_EMPTY;
    return json_node_text(json_node_named(object, name), arena, &text) == ST_OK &&
           arena_dup(arena, text, ret_text) == ST_OK;
}

static bool read_authorities(struct arena *arena, const struct json_node *config,
                             struct kube_webhook_target *target)
{
    struct slice text;
    if (!read_text(arena, config, "caBundle", &text))
        return false;
    if (!text.len)
        return true;
    uint8_t *bytes = arena_alloc(arena, text.len / 4 * 3 + 3);
    target->ca_pem.ptr = bytes;
    return bytes && base64_decode(text, bytes, &target->ca_pem.len);
}

/* -- Paths -- */

/* As path.Join("/", path): without empty steps, "." and "..", and without a slash at the end. */
static bool clean_path(struct arena *arena, struct slice path, struct slice *ret_clean)
{
    struct slice rest = path;
    uint8_t *clean = arena_alloc(arena, path.len + 1);
    size_t len = 0;
    if (!clean)
        return false;
    while (rest.len) {
        struct slice step = slice_cut(&rest, '/');
        if (slice_is(step, "..")) {
            while (len && clean[--len] != '/')
                ;
        } else if (step.len && !slice_is(step, ".")) {
            clean[len++] = '/';
            slice_copy(clean + len, step);
            len += step.len;
        }
    }
    if (!len)
        clean[len++] = '/';
    *ret_clean = slice_of(clean, len);
    return true;
}

static bool set_path(struct cel_work *work, struct slice path, struct kube_webhook_target *target)
{
    struct go_url url = {0};
    if (!clean_path(work->arena, path, &url.path))
        return false;
    target->path = cel_text(go_url_escaped_path(work, &url));
    return !arena_ran_out(work->arena);
}

/* -- The two kinds -- */

static bool read_url(struct arena *arena, struct kube_webhook_target *target)
{
    struct cel_work work = {.arena = arena, .steps_left = INT64_MAX};
    struct go_url url;
    struct cel_value error;
    uint64_t port = PORT_HTTPS;
    if (!go_url_read(&work, target->url, false, &url, &error) || !slice_is(url.scheme, "https"))
        return false;
    struct slice digits = go_url_port(&url);
    if (digits.len && (!slice_decimal(digits, &port) || port > UINT16_MAX))
        return false;
    target->host = go_url_hostname(&url);
    target->port = (uint16_t)port;
    target->authority = url.host;
    /* "host:" is the same as "host". */
    if (target->authority.len && target->authority.ptr[target->authority.len - 1] == ':')
        target->authority.len--;
    return target->host.len && set_path(&work, url.path, target);
}

static bool read_service(struct arena *arena, const struct json_node *service,
                         struct kube_webhook_target *target)
{
    struct cel_work work = {.arena = arena, .steps_left = INT64_MAX};
    int64_t port = PORT_HTTPS;
    if (!read_text(arena, service, "namespace", &target->service_namespace) ||
        !read_text(arena, service, "name", &target->service_name) ||
        !read_text(arena, service, "path", &target->service_path))
        return false;
    const struct json_node *given = json_node_named(service, "port");
    if (json_node_is_set(given) && (!json_node_int(given, &port) || port < 0 || port > UINT16_MAX))
        return false;
    target->service_port = target->port = (uint16_t)(port ? port : PORT_HTTPS);
    size_t room = target->service_name.len + target->service_namespace.len + sizeof("..svc:65535");
    char *text = arena_alloc(arena, room);
    if (!text || !target->service_name.len || !target->service_namespace.len)
        return false;
    int host = snprintf(text, room, "%.*s.%.*s.svc", SLICE_ARGS(target->service_name),
                        SLICE_ARGS(target->service_namespace));
    int port_text = snprintf(text + host, room - (size_t)host, ":%u", (unsigned)target->port);
    target->host = slice_of(text, (size_t)host);
    target->authority = slice_of(text, (size_t)host + (size_t)port_text);
    return set_path(&work, target->service_path, target);
}

/* -- The whole -- */

/* FNV-1a. The length comes first, so that texts cannot be shifted into each other. */
static uint64_t add_to_hash(uint64_t hash, struct slice text)
{
    static const uint64_t prime = 0x100000001b3;
    hash = (hash ^ text.len) * prime;
    for (size_t i = 0; i < text.len; i++)
        hash = (hash ^ text.ptr[i]) * prime;
    return hash;
}

static uint64_t hash_of(const struct kube_webhook_target *t)
{
    const struct slice texts[] = {t->url, t->service_namespace, t->service_name, t->service_path,
                                  t->ca_pem};
    uint64_t hash = 0xcbf29ce484222325 ^ t->service_port;
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        hash = add_to_hash(hash, texts[i]);
    return hash;
}

const struct kube_webhook_target *kube_webhook_target_read(struct arena *arena,
                                                           const struct json_node *client_config)
{
    const struct json_node *service = json_node_named(client_config, "service");
    struct kube_webhook_target *target = arena_calloc(arena, 1, sizeof(*target));
    if (!target || !read_authorities(arena, client_config, target))
        return NULL;
    bool valid = json_node_is_set(service) ? read_service(arena, service, target)
                                           : read_text(arena, client_config, "url", &target->url) &&
                                                 read_url(arena, target);
    if (!valid || target->host.len >= ENDPOINT_HOST_BYTES)
        return NULL;
    target->hash = hash_of(target);
    return target;
}

bool kube_webhook_target_equal(const struct kube_webhook_target *a,
                               const struct kube_webhook_target *b)
{
    return a->hash == b->hash && a->service_port == b->service_port &&
           slice_equal(a->url, b->url) && slice_equal(a->service_namespace, b->service_namespace) &&
           slice_equal(a->service_name, b->service_name) &&
           slice_equal(a->service_path, b->service_path) && slice_equal(a->ca_pem, b->ca_pem);
}

bool kube_webhook_target_is_local(const struct kube_webhook_target *target)
{
    static const uint8_t loopback_v6[16] = {[15] = 1};
    struct go_address address;
    struct go_address_fault fault;
    if (kube_webhook_target_is_service(target))
        return false;
    if (http_name_equal(target->host, SLICE_LITERAL("localhost")))
        return true;
    if (!go_address_read(target->host, &address, &fault))
        return false;
    if (!address.is_v6)
        return address.bytes[0] == 127;
    return memcmp(address.bytes, loopback_v6, sizeof(loopback_v6)) == 0;
}
