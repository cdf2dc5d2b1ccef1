#include "cmd/serve/announce/kubeconfig.h"

#include "base/log/log.h"
#include "codec/json/writer.h"
#include "kube/request/tokens.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const struct url *kubeconfig_url(const struct serve_config *config, const struct server *server)
{
    for (size_t i = 0; i < config->server.listen_count; i++) {
        const struct url *url = server_bound(server, i);
        if (config->server.roles[i] == SERVER_KUBE && url && !address_is_path(&url->address))
            return url;
    }
    return NULL;
}

bool kubeconfig_lacks_certificate(const struct serve_config *config, const struct server *server)
{
    const struct tls_options *tls = &config->server.tls.options;
    const struct url *url = kubeconfig_url(config, server);
    return url && url->secure && !tls->client_cert_optional &&
           (tls->client_cert_auth || *tls->trusted_ca_file);
}

/*
 * The trusted authority is the server's own certificate. A self-signed one is its own authority,
 * and Go's clients accept any certificate that is listed here, whichever authority signed it.
 */
static void write_authority(const struct serve_config *config, const struct url *url,
                            char line[KUBECONFIG_PATH_BYTES])
{
    const struct server_tls_config *tls = &config->server.tls;
    const char *given = *tls->options.cert_file ? tls->options.cert_file : NULL;
    char path[KUBECONFIG_PATH_BYTES];
    *line = '\0';
    if (!url->secure || !realpath(given ? given : config->server.engine.data_dir, path))
        return;
    snprintf(line, KUBECONFIG_PATH_BYTES, "    certificate-authority: %.3900s%s\n", path,
             given ? "" : "/fixtures/client/cert.pem");
}

/* Replaces the file atomically, so that readers see the old or the new one. The file is always a
 * new one that other users cannot read, because it may contain a token. */
static int replace_file(const char *path, struct slice text)
{
    char fresh[KUBECONFIG_PATH_BYTES + 8];
    snprintf(fresh, sizeof(fresh), "%s.new", path);
    if (unlink(fresh) != 0 && errno != ENOENT)
        return -1;
    int fd = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return -1;
    bool written = write(fd, text.ptr, text.len) == (ssize_t)text.len;
    bool closed = close(fd) == 0;
    return written && closed ? rename(fresh, path) : -1;
}

/*
 * The credential is the first token of the token file. When the server needs none, kubectl would
 * still ask its user for a name over TLS, so one is written; without TLS kubectl sends none. A
 * client that needs a certificate is identified by it.
 */
static enum status make_user(const struct serve_config *config, const struct url *url,
                             bool lacks_certificate, struct buf *to)
{
    struct slice token = SLICE_LITERAL("nobody");
    struct json_writer w;
    if (!url->secure || (lacks_certificate && !config->kube_tokens))
        return buf_append_text(to, "{}");
    if (config->kube_tokens)
        token = kube_tokens_first(config->kube_tokens)->token;
    json_writer_init(&w, to); /* JSON is YAML, too */
    json_begin_object(&w);
    json_member_string(&w, "token", token);
    json_end_object(&w);
    return json_writer_finish(&w);
}

/* The address to connect to: a wildcard address becomes one of this machine. */
static void write_server(const struct url *url, char text[URL_TEXT_BYTES])
{
    char bound[URL_TEXT_BYTES];
    url_format(url, bound);
    const char *at = strstr(bound, "://0.0.0.0:"), *host = "127.0.0.1";
    size_t len = strlen("0.0.0.0");
    if (!at) {
        at = strstr(bound, "://[::]:");
        host = "[::1]";
        len = strlen("[::]");
    }
    if (at)
        snprintf(text, URL_TEXT_BYTES, "%.*s://%s%s", (int)(at - bound), bound, host,
                 at + strlen("://") + len);
    else
        memcpy(text, bound, sizeof(bound));
}

static enum status make_text(const struct serve_config *config, const struct url *url,
                             bool lacks_certificate, const char *server, const char *authority,
                             struct buf *to)
{
    if (lacks_certificate)
        TRY(buf_append_text(to, "# The server requires a client certificate that its "
                                "--trusted-ca-file has signed. Add it to the user below\n"
                                "# as client-certificate and client-key, or give it to kubectl: "
                                "--client-certificate FILE --client-key FILE\n"));
    TRY(buf_append_text(to, "apiVersion: v1\nkind: Config\nclusters:\n- name: vigil\n  cluster:\n"
                            "    server: "));
    TRY(buf_append_text(to, server));
    TRY(buf_append_text(to, "\n"));
    TRY(buf_append_text(to, authority));
    TRY(buf_append_text(to, "users:\n- name: vigil\n  user: "));
    TRY(make_user(config, url, lacks_certificate, to));
    return buf_append_text(to, "\ncontexts:\n- name: vigil\n  context:\n    cluster: vigil\n"
                               "    user: vigil\ncurrent-context: vigil\n");
}

bool kubeconfig_write(const struct serve_config *config, const struct server *server,
                      char path[KUBECONFIG_PATH_BYTES])
{
    const struct url *url = kubeconfig_url(config, server);
    char server_text[URL_TEXT_BYTES], authority[KUBECONFIG_PATH_BYTES];
    AUTO(buf_fini) struct buf text = {0};
    snprintf(path, KUBECONFIG_PATH_BYTES, "%s/kubeconfig", config->server.engine.data_dir);
    /* In front of a kube-apiserver it knows who may do what, and this server has no account to
     * give away. */
    if (!url || config->server.face) {
        /* The file of an earlier start must not stay: its address may belong to another program
         * now, such as a `kubectl proxy` to a real cluster, which must not get requests meant for
         * this server. */
        if (unlink(path) != 0 && errno != ENOENT)
            log_warn("cannot remove the kubeconfig of an earlier start", LOG_TEXT("file", path),
                     LOG_TEXT("error", strerrordesc_np(errno)));
        return false;
    }
    write_server(url, server_text);
    write_authority(config, url, authority);
    bool lacks = kubeconfig_lacks_certificate(config, server);
    if (make_text(config, url, lacks, server_text, authority, &text) != ST_OK)
        return false;
    if (replace_file(path, buf_slice(&text)) == 0)
        return true;
    log_warn("cannot write the kubeconfig", LOG_TEXT("file", path),
             LOG_TEXT("error", strerrordesc_np(errno)));
    return false;
}
