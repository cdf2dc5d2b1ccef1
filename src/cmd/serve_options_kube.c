#include "cmd/serve_options_rows.h"

static const struct option kube[] = {
    {
        .name = "listen-kube-urls",
        .kind = OPTION_LIST,
        .fallback = SERVE_KUBE_URL_DEFAULT,
        .help = "Where to serve the Kubernetes API. Empty: nowhere, as under the name etcd unless "
                "it is given. A default that is taken by somebody else is passed over.",
        FIELD(listen_kube_urls),
    },
    {
        .name = "kube-token-file",
        .kind = OPTION_TEXT,
        .fallback = "",
        .help = "A file of bearer tokens, each line token,user,uid,\"group1,group2\". With it only "
                "those who have one, or a client certificate, may use the Kubernetes API.",
        FIELD(kube_token_file),
    },
    {
        .name = "kube-undecodable",
        .kind = OPTION_ENUM,
        .fallback = "error",
        .choices = "error|skip",
        .help = "What a watch does about a stored value that is no object in JSON: end with an "
                "error, as Kubernetes does, or pass over it and count it.",
        FIELD(kube_undecodable),
    },
};

const struct option_group serve_kube_options = GROUP("Kubernetes API", kube);
