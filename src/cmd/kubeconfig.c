#include "cmd/kubeconfig.h"

#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TEXT_BYTES = 2 * KUBECONFIG_PATH_BYTES };

const struct url *kubeconfig_url(const struct serve_config *config, const struct server *server)
{
    for (size_t i = 0; i < config->server.listen_count; i++) {
        const struct url *url = server_bound(server, i);
        if (config->server.roles[i] == SERVER_KUBE && url && !address_is_path(&url->address))
            return url;
    }
    return NULL;
}

/* Whom to trust: a certificate that we made is its own authority, others are known to the system
 * or to who had them made. */
static void write_authority(const struct serve_config *config, const struct url *url,
                            char line[KUBECONFIG_PATH_BYTES])
{
    const struct server_tls_config *tls = &config->server.tls;
    char directory[KUBECONFIG_PATH_BYTES];
    *line = '\0';
    if (!url->secure || *tls->options.cert_file ||
        !realpath(config->server.engine.data_dir, directory))
        return;
    snprintf(line, KUBECONFIG_PATH_BYTES,
             "    certificate-authority: %.3900s/fixtures/client/cert.pem\n", directory);
}

/* Whole or not at all: who reads it meanwhile has the one before. */
static int replace_file(const char *path, const char *text)
{
    char fresh[KUBECONFIG_PATH_BYTES + 8];
    snprintf(fresh, sizeof(fresh), "%s.new", path);
    int fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return -1;
    size_t len = strlen(text);
    bool written = write(fd, text, len) == (ssize_t)len;
    bool closed = close(fd) == 0;
    return written && closed ? rename(fresh, path) : -1;
}

bool kubeconfig_write(const struct serve_config *config, const struct server *server,
                      char path[KUBECONFIG_PATH_BYTES])
{
    const struct url *url = kubeconfig_url(config, server);
    char text[TEXT_BYTES], server_text[URL_TEXT_BYTES], authority[KUBECONFIG_PATH_BYTES];
    if (!url)
        return false;
    /* Nobody is asked, but over TLS kubectl asks its user when it has nothing to show. */
    const char *user = url->secure ? "{token: nobody}" : "{}";
    url_format(url, server_text);
    write_authority(config, url, authority);
    snprintf(path, KUBECONFIG_PATH_BYTES, "%s/kubeconfig", config->server.engine.data_dir);
    snprintf(
        text, sizeof(text),
        "apiVersion: v1\nkind: Config\nclusters:\n- name: vigil\n  cluster:\n    server: %s\n%s"
        "users:\n- name: vigil\n  user: %s\ncontexts:\n- name: vigil\n  context:\n"
        "    cluster: vigil\n    user: vigil\ncurrent-context: vigil\n",
        server_text, authority, user);
    if (replace_file(path, text) == 0)
        return true;
    log_warn("cannot write the kubeconfig", LOG_TEXT("file", path),
             LOG_TEXT("error", strerrordesc_np(errno)));
    return false;
}
