#include "kubeclient/connect/exec_credential.h"

#include "codec/base64.h"
#include "codec/json/writer.h"
#include "codec/kube_time.h"
#include "wire/http/http1/parser.h"
#include "yaml/yaml.h"

bool exec_credential_version_known(const char *api_version)
{
    return strcmp(api_version, "client.authentication.k8s.io/v1") == 0 ||
           strcmp(api_version, "client.authentication.k8s.io/v1beta1") == 0;
}

/* -- What the plugin is given -- */

static void write_text(struct json_writer *w, const char *key, const char *text)
{
    if (!text)
        return;
    json_member_text(w, key, text);
}

static void write_true(struct json_writer *w, const char *key, bool truth)
{
    if (!truth)
        return;
    json_member_bool(w, key, true);
}

static enum status write_ca(struct json_writer *w, struct slice pem)
{
    AUTO(buf_fini) struct buf base64 = {0};
    if (!pem.len)
        return ST_OK;
    TRY(buf_reserve(&base64, base64_encoded_len(pem.len)));
    base64_encode(pem, base64.ptr);
    json_member_string(w, "certificate-authority-data",
                       slice_of(base64.ptr, base64_encoded_len(pem.len)));
    return ST_OK;
}

/* The config is always present, as in client-go. */
static enum status write_cluster(struct json_writer *w, const struct kubeconfig *config,
                                 struct slice ca_pem)
{
    struct slice own = config->exec.cluster_config;
    json_member_object(w, "cluster");
    write_text(w, "server", config->server);
    write_text(w, "tls-server-name", config->tls_server_name);
    write_true(w, "insecure-skip-tls-verify", config->insecure_skip_verify);
    TRY(write_ca(w, ca_pem));
    write_text(w, "proxy-url", config->proxy_url);
    write_true(w, "disable-compression", config->disable_compression);
    json_member_raw(w, "config", own.len ? own : SLICE_LITERAL("null"));
    json_end_object(w);
    return ST_OK;
}

enum status exec_credential_write(struct buf *to, const struct kubeconfig *config,
                                  struct slice ca_pem)
{
    struct json_writer w;
    json_writer_init(&w, to);
    json_begin_object(&w);
    write_text(&w, "kind", "ExecCredential");
    write_text(&w, "apiVersion", config->exec.api_version);
    json_member_object(&w, "spec");
    if (config->exec.wants_cluster_info)
        TRY(write_cluster(&w, config, ca_pem));
    json_member_bool(&w, "interactive", false);
    json_end_object(&w);
    json_end_object(&w);
    return json_writer_finish(&w);
}

/* -- What it printed -- */

static enum status read_tree(struct arena *arena, struct slice text, struct json_node **ret_root,
                             struct error *error)
{
    struct error why = {0};
    while (text.len && strchr(" \t\r\n", text.ptr[0]) && text.ptr[0])
        text = slice_sub(text, 1, text.len - 1);
    if (!text.len)
        return error_set(error, ST_MALFORMED, "it printed nothing");
    bool json = text.ptr[0] == '{';
    enum status status = json ? json_tree_read(arena, text, ret_root, &why)
                              : yaml_tree_read(arena, text, ret_root, &why);
    if (status == ST_NOMEM || arena_ran_out(arena))
        return error_no_memory(error);
    if (status != ST_OK)
        return error_set(error, ST_MALFORMED, "it did not print an ExecCredential: %.200s",
                         why.text[0] ? why.text : status_reason(status));
    return ST_OK;
}

/* The text of a member of the status; empty if it is absent. */
static enum status get_text(struct arena *arena, const struct json_node *object, const char *key,
                            struct slice *ret_text, struct error *error)
{
    const struct json_node *node = json_look_member(object, slice_from_text(key));
    *ret_text = SLICE_EMPTY;
    if (!node || node->type == JSON_TYPE_NULL)
        return ST_OK;
    if (node->type != JSON_TYPE_STRING)
        return error_set(error, ST_MALFORMED, "the %s that it printed is not a string", key);
    return json_node_text(node, arena, ret_text) == ST_OK ? ST_OK : error_no_memory(error);
}

static enum status check_type(struct arena *arena, const struct json_node *root,
                              const char *api_version, struct error *error)
{
    struct slice kind, version;
    if (root->type != JSON_TYPE_OBJECT)
        return error_set(error, ST_MALFORMED, "it did not print an ExecCredential");
    TRY(get_text(arena, root, "kind", &kind, error));
    TRY(get_text(arena, root, "apiVersion", &version, error));
    if (!slice_equal(kind, SLICE_LITERAL("ExecCredential")))
        return error_set(error, ST_MALFORMED,
                         "it printed an object of kind \"%.*s\", not an ExecCredential",
                         (int)size_min(kind.len, 80), (const char *)kind.ptr);
    if (!slice_equal(version, slice_from_text(api_version)))
        return error_set(error, ST_MALFORMED,
                         "it is configured to use %s, but it printed version \"%.*s\"", api_version,
                         (int)size_min(version.len, 80), (const char *)version.ptr);
    return ST_OK;
}

/* In nanoseconds, as far as they reach: to the year 2262. Go's zero time means never. */
static int64_t to_ns(int64_t seconds, int32_t nanos)
{
    if (seconds == KUBE_TIME_NONE || seconds >= INT64_MAX / NS_PER_S)
        return CLOCK_NEVER;
    return seconds <= 0 ? 0 : seconds * NS_PER_S + nanos;
}

static enum status read_expiry(struct arena *arena, const struct json_node *status,
                               int64_t *ret_expires_ns, struct error *error)
{
    const struct json_node *node = json_look_member(status, SLICE_LITERAL("expirationTimestamp"));
    struct slice text;
    int64_t seconds;
    int32_t nanos;
    *ret_expires_ns = CLOCK_NEVER;
    if (!node || node->type == JSON_TYPE_NULL)
        return ST_OK;
    TRY(get_text(arena, status, "expirationTimestamp", &text, error));
    if (!kube_time_read(text, &seconds, &nanos))
        return error_set(error, ST_MALFORMED, "the expirationTimestamp that it printed is invalid");
    *ret_expires_ns = to_ns(seconds, nanos);
    return ST_OK;
}

enum status exec_credential_read(struct arena *arena, struct slice text, const char *api_version,
                                 struct exec_credential *ret_credential, struct error *error)
{
    struct json_node *root;
    struct exec_credential found;
    TRY(read_tree(arena, text, &root, error));
    TRY(check_type(arena, root, api_version, error));
    const struct json_node *status = json_look_member(root, SLICE_LITERAL("status"));
    if (!status || status->type != JSON_TYPE_OBJECT)
        return error_set(error, ST_MALFORMED, "the ExecCredential that it printed has no status");
    TRY(get_text(arena, status, "token", &found.token, error));
    TRY(get_text(arena, status, "clientCertificateData", &found.cert, error));
    TRY(get_text(arena, status, "clientKeyData", &found.key, error));
    TRY(read_expiry(arena, status, &found.expires_ns, error));
    if (!found.token.len && !found.cert.len && !found.key.len)
        return error_set(error, ST_MALFORMED, "it printed neither a token nor a certificate");
    if (!found.cert.len != !found.key.len)
        return error_set(error, ST_MALFORMED,
                         "it printed only a certificate or only a key, not both");
    if (!http1_is_field_value(found.token))
        return error_set(error, ST_MALFORMED,
                         "the token that it printed contains line ends or zeros");
    *ret_credential = found;
    return ST_OK;
}
