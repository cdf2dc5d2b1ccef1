#include "kubeclient/call/configuration.h"

#include "client/driver/bytes.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct configuration_environment configuration_environment_system(void)
{
    return (struct configuration_environment){
        .kubeconfig = getenv("KUBECONFIG"),
        .home = getenv("HOME"),
        .service_host = getenv("KUBERNETES_SERVICE_HOST"),
        .service_port = getenv("KUBERNETES_SERVICE_PORT"),
        .service_account = KUBECONFIG_SERVICE_ACCOUNT,
    };
}

/* -- Where the server is -- */

/* Whether a file of this list, which is separated by colons, exists. */
static bool any_exists(const char *paths)
{
    char path[PATH_MAX];
    struct slice rest = slice_from_text(paths);
    while (rest.len) {
        struct slice part = slice_cut(&rest, ':');
        if (part.len == 0 || part.len >= sizeof(path))
            continue;
        slice_copy(path, part);
        path[part.len] = 0;
        if (access(path, F_OK) == 0)
            return true;
    }
    return false;
}

static enum status read_default(const struct configuration_environment *e, const char *context,
                                struct kubeconfig *config, struct error *error)
{
    char path[PATH_MAX];
    if (text_is_given(e->kubeconfig) && any_exists(e->kubeconfig))
        return kubeconfig_load(e->kubeconfig, context, config, error);
    int len = snprintf(path, sizeof(path), "%s/.kube/config", e->home ? e->home : "");
    if (!text_is_given(e->kubeconfig) && text_is_given(e->home) && len < (int)sizeof(path) &&
        access(path, F_OK) == 0)
        return kubeconfig_load(path, context, config, error);
    enum status status =
        kubeconfig_in_cluster(e->service_host, e->service_port, e->service_account, config, error);
    if (status != ST_NOT_FOUND || text_is_given(e->service_host))
        return status;
    return error_set(error, ST_NOT_FOUND,
                     "no server is given: there is neither a kubeconfig ($KUBECONFIG, "
                     "~/.kube/config) nor the service account of a pod");
}

static enum status read_source(const vigil_kube_options *o,
                               const struct configuration_environment *e, struct kubeconfig *config,
                               struct error *error)
{
    if (text_is_given(o->server)) {
        arena_init(&config->arena, NULL, 0, KUBECONFIG_ARENA_BYTES_MAX);
        return ST_OK;
    }
    if (text_is_given(o->kubeconfig))
        return kubeconfig_load(o->kubeconfig, o->context, config, error);
    if (o->in_cluster)
        return kubeconfig_in_cluster(e->service_host, e->service_port, e->service_account, config,
                                     error);
    return read_default(e, o->context, config, error);
}

/* -- What the options replace -- */

static enum status replace(struct kubeconfig *config, const char *text, const char **to)
{
    struct slice copy;
    if (!text_is_given(text))
        return ST_OK;
    TRY(arena_dup(&config->arena, slice_of(text, strlen(text) + 1), &copy));
    *to = (const char *)copy.ptr;
    return ST_OK;
}

static enum status replace_pem(struct kubeconfig *config, const char *file,
                               struct kubeconfig_pem *to)
{
    if (!text_is_given(file))
        return ST_OK;
    *to = (struct kubeconfig_pem){0};
    return replace(config, file, &to->file);
}

static enum status replace_tls(const vigil_kube_options *o, struct kubeconfig *config)
{
    if (o->insecure_skip_verify) {
        config->insecure_skip_verify = true;
        config->ca = (struct kubeconfig_pem){0};
    } else if (text_is_given(o->ca_file)) {
        config->insecure_skip_verify = false;
    }
    TRY(replace_pem(config, o->ca_file, &config->ca));
    TRY(replace_pem(config, o->cert_file, &config->cert));
    TRY(replace_pem(config, o->key_file, &config->key));
    return replace(config, o->server_name, &config->tls_server_name);
}

/* A token or a password is used alone. */
static enum status replace_credentials(const vigil_kube_options *o, struct kubeconfig *config)
{
    if (text_is_given(o->token) || text_is_given(o->token_file) || text_is_given(o->user)) {
        config->token = config->token_file = config->user = config->password = NULL;
        config->exec = (struct kubeconfig_exec){0};
    }
    TRY(replace(config, o->token, &config->token));
    TRY(replace(config, o->token_file, &config->token_file));
    TRY(replace(config, o->user, &config->user));
    TRY(replace(config, o->password, &config->password));
    if (text_is_given(o->impersonate))
        config->impersonate = (struct kubeconfig_impersonation){0};
    return replace(config, o->impersonate, &config->impersonate.user);
}

static enum status replace_all(const vigil_kube_options *o, struct kubeconfig *config,
                               struct error *error)
{
    if (replace(config, o->server, &config->server) != ST_OK ||
        replace(config, o->proxy_url, &config->proxy_url) != ST_OK ||
        replace(config, o->name_space, &config->name_space) != ST_OK ||
        replace_tls(o, config) != ST_OK || replace_credentials(o, config) != ST_OK)
        return error_no_memory(error);
    return ST_OK;
}

static enum status find_server(const vigil_kube_options *o, const struct kubeconfig *config,
                               struct server_url *ret_url, struct error *error)
{
    bool tls_configured = kubeconfig_has_pem(&config->ca) || kubeconfig_has_pem(&config->cert) ||
                          config->insecure_skip_verify;
    TRY(server_url_parse(config->server, tls_configured, ret_url, error));
    /* The author of the kubeconfig must not be able to read what the program meant for a server
     * with TLS. */
    if (ret_url->endpoint.security != ENDPOINT_TLS && !text_is_given(o->server) &&
        kubeconfig_credential(config))
        return error_set(error, ST_INVALID,
                         "the options give %s, which anyone could read on the way to "
                         "\"%.200s\", the server of the kubeconfig: use a kubeconfig whose server "
                         "begins with https://, or name the server in the option server",
                         kubeconfig_credential(config), config->server);
    return ST_OK;
}

enum status configuration_choose(const vigil_kube_options *options,
                                 const struct configuration_environment *environment,
                                 struct kubeconfig *ret_config, struct server_url *ret_url,
                                 struct error *error)
{
    struct kubeconfig config = {0};
    TRY(read_source(options, environment, &config, error));
    enum status status = replace_all(options, &config, error);
    if (status == ST_OK)
        status = find_server(options, &config, ret_url, error);
    if (status != ST_OK) {
        kubeconfig_fini(&config);
        return status;
    }
    *ret_config = config;
    return ST_OK;
}
