#include "kube/custom/definition_webhook.h"

#include "codec/base64.h"
#include "kube/custom/conversion_review.h"
#include "kube/types/go_text.h"
#include "kube/types/validate/kinds.h"
#include "net/tls/client.h"

/* -- Authorities -- */

#define CA_BUNDLE "conversion.webhook.clientConfig.caBundle"

enum status kube_definition_authorities(struct arena *arena, const struct json_node *spec,
                                        struct error *error)
{
    AUTO(tls_client_source_freep) struct tls_client_source *source = NULL;
    struct tls_client_options options = TLS_CLIENT_OPTIONS_NONE;
    struct error why = {0};
    struct slice text, pem;
    TRY(json_node_text(json_node_path(spec, CA_BUNDLE), arena, &text));
    if (!text.len)
        return ST_OK;
    uint8_t *bytes = arena_alloc(arena, text.len / 4 * 3 + 3);
    if (!bytes)
        return ST_NOMEM;
    /* Another text than base64 is reported when the definition is decoded. */
    if (!base64_decode(text, bytes, &pem.len))
        return ST_OK;
    pem.ptr = bytes;
    if (!go_trim(pem).len)
        return error_set(error, ST_INVALID,
                         "unable to load root certificates: unable to parse bytes as PEM block");
    options.ca_pem = pem;
    enum status status =
        tls_client_source_new(&options, (struct tls_source_hooks){0}, &source, &why);
    if (status == ST_OK || status == ST_NOMEM)
        return status;
    if (!memmem(pem.ptr, pem.len, "-----BEGIN ", strlen("-----BEGIN ")))
        return error_set(error, ST_INVALID,
                         "unable to load root certificates: unable to parse bytes as PEM block");
    return error_set(error, ST_INVALID, "unable to load root certificates: %s", why.text);
}

/* Authorities that are not valid may be set until the definition is established, and kept. */
static void check_authorities(struct definition_check *c, const struct json_node *spec,
                              const struct json_node *old, bool established)
{
    struct error error = {0}, ignored = {0};
    enum status status = ST_OK;
    if (!established ||
        kube_definition_authorities(c->arena, json_node_named(old, "spec"), &ignored) == ST_INVALID)
        return;
    status = kube_definition_authorities(c->arena, spec, &error);
    if (status == ST_NOMEM)
        c->errors->no_memory = true;
    if (status == ST_INVALID)
        check_invalid(c, "conversion.webhookClientConfig.caBundle", json_node_path(spec, CA_BUNDLE),
                      error.text);
}

/* -- The rules -- */

/* Kubernetes reports fields by the names of its internal type. */
static void check_webhook(struct definition_check *c, const struct json_node *spec,
                          const struct json_node *old, bool established)
{
    struct check check = {.arena = c->arena, .errors = c->errors};
    const struct at *at = AT(AT(NULL, "spec"), "conversion");
    const struct json_node *webhook = json_node_path(spec, "conversion.webhook");
    const struct json_node *client = rule_member(webhook, "clientConfig");
    const struct json_node *versions =
        json_node_path(old, "spec.conversion.webhook.conversionReviewVersions");
    bool keeps = json_node_items(versions) && !conversion_review_version(versions);
    if (!client)
        check_required(c, "conversion.webhookClientConfig",
                       "required when strategy is set to Webhook");
    else
        rule_webhook_client(&check, AT(at, "webhookClientConfig"), client);
    if (client)
        check_authorities(c, spec, old, established);
    rule_review_versions(&check, AT(at, "conversionReviewVersions"),
                         rule_member(webhook, "conversionReviewVersions"), keeps, NULL);
}

void kube_definition_check_conversion(struct definition_check *c, const struct json_node *spec,
                                      const struct json_node *old, bool established)
{
    const struct json_node *conversion = json_node_named(spec, "conversion");
    const struct json_node *strategy = json_node_named(conversion, "strategy");
    if (!json_node_is_set(conversion))
        return;
    if (json_node_is_text(strategy, "Webhook")) {
        check_webhook(c, spec, old, established);
        return;
    }
    if (!json_node_has_text(strategy))
        check_required(c, "conversion.strategy", "");
    else if (!json_node_is_text(strategy, "None"))
        check_unsupported(c, "conversion.strategy", strategy, "\"None\", \"Webhook\"");
    if (check_has(json_node_named(conversion, "webhook"), "clientConfig"))
        check_forbidden(c, "conversion.webhookClientConfig",
                        "should not be set when strategy is not set to Webhook");
    if (json_node_items_at(conversion, "webhook.conversionReviewVersions"))
        check_forbidden(c, "conversion.conversionReviewVersions",
                        "should not be set when strategy is not set to Webhook");
}
