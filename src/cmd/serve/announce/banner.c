#include "cmd/serve/announce/banner.h"

#include "base/version.h"
#include "cmd/serve/announce/kubeconfig.h"

#include <errno.h>

/* What the command line uses without --endpoints. */
#define DEFAULT_URL "http://127.0.0.1:2379"

/* kubectl sends no token without TLS. */
static void write_tier(FILE *to, const struct serve_config *config, const struct server *server)
{
    const char *authority = config->server.tls.options.cert_file;
    char text[URL_TEXT_BYTES] = "";
    size_t at = 0;
    while (config->server.roles[at] != SERVER_KUBE)
        at++;
    const struct url *url = server_bound(server, at);
    url_format(url, text);
    fprintf(to, "Vigil %s is ready in front of the kube-apiserver %s.\n\n", VIGIL_VERSION,
            config->tier.server);
    fprintf(to, "  Kubernetes   %s\n", text);
    fprintf(to, "  mirror       %s (empty at every start)\n\n", config->server.engine.data_dir);
    fprintf(to, "In another terminal, with the TOKEN of a user of the kube-apiserver:\n\n");
    if (address_is_path(&url->address))
        fprintf(to,
                "    curl -H 'Authorization: Bearer TOKEN' --unix-socket %s "
                "http://localhost/api/v1/pods\n",
                strstr(text, "://") + strlen("://"));
    else if (url->secure)
        fprintf(to, "    kubectl --server %s --certificate-authority %s%s --token TOKEN get pods\n",
                text, *authority ? authority : config->server.engine.data_dir,
                *authority ? "" : "/fixtures/client/cert.pem");
    else
        fprintf(to, "    curl -H 'Authorization: Bearer TOKEN' %s/api/v1/pods\n", text);
    fprintf(to, "\nCtrl-C stops the server; the kube-apiserver keeps all data.\n\n");
}

void banner_write(FILE *to, const struct serve_config *config, struct server *server,
                  const char *kubeconfig)
{
    char first[URL_TEXT_BYTES] = "";
    if (config->server.face) {
        write_tier(to, config, server);
        return;
    }
    /* A link with another name, such as etcd, has none of the commands. */
    bool has_commands = strcmp(program_invocation_short_name, "vigil") == 0;
    const char *program = has_commands ? program_invocation_name : "vigil";
    fprintf(to, "Vigil %s is ready to serve client requests as etcd %s.\n\n", VIGIL_VERSION,
            config->server.etcd.version);
    for (size_t i = config->client_count; i-- > 0;) {
        url_format(server_bound(server, i), first);
        fprintf(to, "  gRPC, HTTP   %s\n", first);
    }
    if (kubeconfig) {
        char text[URL_TEXT_BYTES];
        url_format(kubeconfig_url(config, server), text);
        fprintf(to, "  Kubernetes   %s\n", text);
    } else if (config->kube_withheld) {
        fprintf(to, "  Kubernetes   not served by default: %s (--listen-kube-urls)\n",
                config->kube_withheld);
    }
    if (config->server.clustered)
        fprintf(to, "  cluster      %s\n", config->server.cluster.upstream.endpoints);
    fprintf(to, config->server.clustered ? "  mirror       %s\n\n" : "  data         %s\n\n",
            config->server.engine.data_dir);
    fprintf(to, "In another terminal:\n\n");
    if (strcmp(first, DEFAULT_URL) != 0)
        fprintf(to, "    export VIGIL_ENDPOINTS=%s\n", first);
    fprintf(to, "    %s put greeting hello\n", program);
    fprintf(to, "    %s get greeting\n", program);
    fprintf(to, "    %s watch greeting\n", program);
    if (strncmp(first, "unix", 4) == 0)
        fprintf(to, "    curl --unix-socket %s http://localhost/health\n",
                first + strlen("unix://"));
    else
        fprintf(to, "    curl %s/health\n", first);
    if (kubeconfig)
        fprintf(to, "    kubectl --kubeconfig %s%s api-resources\n", kubeconfig,
                kubeconfig_lacks_certificate(config, server)
                    ? " --client-certificate FILE --client-key FILE"
                    : "");
    fprintf(to, config->server.clustered
                    ? "\nCtrl-C stops the server; the cluster keeps all data.\n\n"
                    : "\nCtrl-C stops the server; acknowledged writes are kept.\n\n");
}
