#include "cmd/serve/config/config_kube.h"

#include "base/xalloc.h"
#include "cmd/serve/config/admission_file.h"
#include "io/whole_file.h"
#include "kube/call/config.h"

#include <stdlib.h>
#include <string.h>

enum { AUTHORITIES_BYTES_MAX = 512 << 10, PORT_DEFAULT = 6443 };

static bool is_loopback(const struct kube_address *address)
{
    static const uint8_t v6[KUBE_ADDRESS_BYTES] = {[KUBE_ADDRESS_BYTES - 1] = 1};
    return address->is_v6 ? memcmp(address->bytes, v6, sizeof(v6)) == 0 : address->bytes[0] == 127;
}

static bool is_any(const struct kube_address *address)
{
    static const uint8_t none[KUBE_ADDRESS_BYTES];
    return memcmp(address->bytes, none, sizeof(none)) == 0;
}

/* "192.0.2.1:6443" or "[2001:db8::1]:6443" */
static bool address_of(const struct url *url, struct kube_address *ret_address)
{
    char text[ADDRESS_TEXT_BYTES];
    address_format(&url->address, text);
    char *colon = strrchr(text, ':');
    if (!colon)
        return false;
    *colon = '\0';
    /* The bracket before the colon belongs to an IPv6 address, which itself contains colons. */
    bool bracketed = text[0] == '[';
    if (bracketed)
        colon[-1] = '\0';
    return kube_address_parse(slice_from_text(text + bracketed), ret_address);
}

static enum status set_advertised(struct kube_start_settings *start, const struct url *url,
                                  const struct serve_options *options, struct error *error)
{
    const char *given = options->kube_advertise_address;
    bool known = *given ? kube_address_parse(slice_from_text(given), &start->advertised)
                        : url && address_of(url, &start->advertised);
    if (*given && !known)
        return error_set(error, ST_INVALID,
                         "--kube-advertise-address: \"%.100s\" is not an address", given);
    /* Pods would look for the server on their own loopback interface: such an address is not put
     * into the endpoints of the Service kubernetes. */
    start->is_advertised = known && !is_loopback(&start->advertised) && !is_any(&start->advertised);
    return ST_OK;
}

static enum status read_pem(const char *path, struct arena *arena, struct slice *ret_pem,
                            struct error *error)
{
    AUTO(buf_fini) struct buf text = {0};
    if (!*path)
        return ST_OK;
    TRY(whole_file_read(path, WHOLE_FILE_REGULAR, AUTHORITIES_BYTES_MAX, &text, error));
    if (arena_dup(arena, buf_slice(&text), ret_pem) != ST_OK)
        xalloc_check(NULL, text.len);
    return ST_OK;
}

static enum status read_range(struct kube_range *ret_range, const struct serve_options *options,
                              struct error *error)
{
    const char *ranges = options->kube_service_cluster_ip_range;
    struct slice first;
    struct error why;
    /* The flag may name a second range for the other address family. Vigil allocates from the
     * first. */
    if (!option_list_next(&ranges, &first))
        return error_set(error, ST_INVALID, "--kube-service-cluster-ip-range is empty");
    if (kube_range_parse(first, ret_range, &why) != ST_OK)
        return error_set(error, ST_INVALID, "--kube-service-cluster-ip-range: %.300s", why.text);
    return ST_OK;
}

/* "30000-32767" */
static enum status read_ports(struct kube_service_ranges *ranges, const char *text,
                              struct error *error)
{
    char *end;
    unsigned long first = strtoul(text, &end, 10);
    unsigned long last = *end == '-' ? strtoul(end + 1, &end, 10) : 0;
    if (*end || !first || first > last || last > UINT16_MAX)
        return error_set(error, ST_INVALID,
                         "--kube-service-node-port-range: \"%.100s\" is not a range such as "
                         "30000-32767",
                         text);
    ranges->port_first = (uint16_t)first;
    ranges->port_last = (uint16_t)last;
    return ST_OK;
}

enum status config_kube_services(const struct serve_options *options, struct arena *arena,
                                 const struct kube_service_ranges **ret_ranges, struct error *error)
{
    size_t bytes = sizeof(struct kube_service_ranges);
    struct kube_service_ranges *ranges = xalloc_check(arena_alloc(arena, bytes), bytes);
    *ranges = (struct kube_service_ranges){0};
    TRY(read_range(&ranges->addresses, options, error));
    TRY(read_ports(ranges, options->kube_service_node_port_range, error));
    *ret_ranges = ranges;
    return ST_OK;
}

enum status config_kube_start(const struct url *url, const struct serve_options *options,
                              struct arena *arena, const struct kube_start_settings **ret_start,
                              struct error *error)
{
    size_t bytes = sizeof(struct kube_start_settings);
    struct kube_start_settings *start = xalloc_check(arena_alloc(arena, bytes), bytes);
    uint16_t port = url ? address_port(&url->address) : 0;
    *start = (struct kube_start_settings){.port = port ? port : PORT_DEFAULT};
    TRY(read_range(&start->services, options, error));
    TRY(set_advertised(start, url, options, error));
    TRY(read_pem(options->kube_client_ca_file, arena, &start->client_ca, error));
    /* The server's own certificate, as in the kubeconfig that is written. If it cannot be read, the
     * listener says so. */
    struct error ignored;
    if (url && url->secure &&
        read_pem(options->cert_file, arena, &start->root_ca, &ignored) != ST_OK)
        start->root_ca = SLICE_EMPTY;
    *ret_start = options->kube_bootstrap ? start : NULL;
    return ST_OK;
}

enum status config_kube_admission(const struct serve_options *options, struct arena *arena,
                                  const struct kube_admission_set **ret_set,
                                  const struct kube_webhook_settings **ret_webhooks,
                                  struct error *error)
{
    size_t bytes = sizeof(struct kube_admission_set), more = sizeof(struct kube_webhook_settings);
    struct kube_admission_set *set = xalloc_check(arena_alloc(arena, bytes), bytes);
    struct kube_webhook_settings *webhooks = xalloc_check(arena_alloc(arena, more), more);
    *webhooks = kube_webhook_settings_system();
    *set =
        kube_admission_default(options->kube_authorization_mode != KUBE_AUTHORIZATION_ALWAYS_ALLOW);
    TRY(kube_admission_enable(set, options->kube_enable_admission_plugins,
                              "kube-enable-admission-plugins", error));
    TRY(kube_admission_disable(set, options->kube_disable_admission_plugins,
                               "kube-disable-admission-plugins", error));
    if (*options->kube_admission_control_config_file)
        TRY(admission_file_read(options->kube_admission_control_config_file, arena, set, webhooks,
                                error));
    *ret_set = set;
    *ret_webhooks = webhooks;
    return ST_OK;
}
