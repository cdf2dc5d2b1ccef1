#include "kube/webhook/settings.h"

#include "client/names/resolver.h"
#include "io/socket.h"

#include <stdio.h>
#include <stdlib.h>

enum { PORT_HTTPS = 443 };

struct kube_webhook_settings kube_webhook_settings_system(void)
{
    return (struct kube_webhook_settings){
        .network = network_posix(),
        .resolver = &resolver_system,
        .environment = getenv,
    };
}

static const struct kube_webhook_credentials *find_row(const struct kube_webhook_users *users,
                                                       bool star, struct slice name)
{
    struct slice prefix = star ? SLICE_LITERAL("*.") : SLICE_EMPTY;
    for (size_t i = 0; i < users->count; i++) {
        struct slice hosts = users->rows[i].hosts;
        if (slice_has_prefix(hosts, prefix) &&
            slice_equal(slice_sub(hosts, prefix.len, hosts.len - prefix.len), name))
            return &users->rows[i];
    }
    return NULL;
}

/* The name itself, or "*." and what follows one of its dots. */
static const struct kube_webhook_credentials *find_name(const struct kube_webhook_users *users,
                                                        struct slice name)
{
    const struct kube_webhook_credentials *found = find_row(users, false, name);
    for (size_t i = 0; i < name.len && !found; i++)
        if (name.ptr[i] == '.')
            found = find_row(users, true, slice_sub(name, i + 1, name.len - i - 1));
    return found;
}

const struct kube_webhook_credentials *kube_webhook_credentials_find(
    const struct kube_webhook_users *users, struct slice host, uint16_t port)
{
    char text[ENDPOINT_TEXT_BYTES];
    const char *const brackets = memchr(host.ptr, ':', host.len) ? "[]" : "";
    const struct kube_webhook_credentials *found;
    snprintf(text, sizeof(text), "%.1s%.*s%s:%u", brackets, SLICE_ARGS(host),
             *brackets ? brackets + 1 : "", (unsigned)port);
    found = find_name(users, slice_from_text(text));
    if (!found && port == PORT_HTTPS)
        found = find_name(users, host);
    if (!found)
        found = find_row(users, false, SLICE_LITERAL("*"));
    return found ? found : users->others;
}
