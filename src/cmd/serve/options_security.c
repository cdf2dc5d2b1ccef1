#include "cmd/serve/options_private.h"

static const struct option security[] = {
    {
        .name = "cert-file",
        .kind = OPTION_TEXT,
        .fallback = "",
        .help =
            "The server certificate for https URLs, PEM. Its chain may follow in the same file.",
        FIELD(cert_file),
    },
    {
        .name = "key-file",
        .kind = OPTION_TEXT,
        .fallback = "",
        .help = "The private key of --cert-file, PEM.",
        FIELD(key_file),
    },
    {
        .name = "client-cert-auth",
        .kind = OPTION_BOOL,
        .fallback = "false",
        .help = "Accept only clients that present a certificate signed by --trusted-ca-file.",
        FIELD(client_cert_auth),
    },
    {
        .name = "trusted-ca-file",
        .kind = OPTION_TEXT,
        .fallback = "",
        .help = "The certificate authorities that sign client certificates, PEM. Without "
                "--client-cert-auth it requires client certificates, too.",
        FIELD(trusted_ca_file),
    },
    {
        .name = "client-crl-file",
        .kind = OPTION_TEXT,
        .fallback = "",
        .help = "A list of revoked certificates, DER or PEM.",
        FIELD(client_crl_file),
    },
    {
        .name = "client-cert-allowed-cn",
        .kind = OPTION_LIST,
        .fallback = "",
        .help = "Accept only client certificates with one of these common names. Empty: any.",
        FIELD(client_cert_allowed_cn),
    },
    {
        .name = "client-cert-allowed-hostname",
        .kind = OPTION_LIST,
        .fallback = "",
        .help = "Accept only client certificates that are valid for one of these host names. "
                "Empty: any.",
        FIELD(client_cert_allowed_hostname),
    },
    {
        .name = "auto-tls",
        .kind = OPTION_BOOL,
        .fallback = "false",
        .help = "Without --cert-file: generate and use a self-signed certificate.",
        FIELD(auto_tls),
    },
    {
        .name = "self-signed-cert-validity",
        .kind = OPTION_INT,
        .fallback = "1",
        .help = "The validity of a generated certificate, in years.",
        .min = 1,
        .max = 100,
        FIELD(self_signed_cert_validity),
    },
    {
        .name = "tls-min-version",
        .kind = OPTION_TEXT,
        .fallback = "TLS1.2",
        .help = "The oldest TLS version to accept: TLS1.2 or TLS1.3. Empty: TLS1.2.",
        FIELD(tls_min_version),
    },
    {
        .name = "tls-max-version",
        .kind = OPTION_TEXT,
        .fallback = "",
        .help = "The newest TLS version to accept: TLS1.2 or TLS1.3. Empty: the newest known.",
        FIELD(tls_max_version),
    },
    {
        .name = "cipher-suites",
        .kind = OPTION_LIST,
        .fallback = "",
        .help = "Cipher suites for TLS 1.2, by their standard names. Empty: a list of safe suites.",
        FIELD(cipher_suites),
    },
    {
        .name = "auth-token",
        .kind = OPTION_TEXT,
        .fallback = "simple",
        .help = "The kind of token that users get when they log in: simple, or "
                "jwt,sign-method=RS256,priv-key=FILE,pub-key=FILE,ttl=5m.",
        FIELD(auth_token),
    },
    {
        .name = "auth-token-ttl",
        .kind = OPTION_INT,
        .fallback = "300",
        .help = "Seconds after which an unused simple token expires. 0: 300.",
        .max = INT32_MAX,
        FIELD(auth_token_ttl_s),
    },
    {
        .name = "bcrypt-cost",
        .kind = OPTION_INT,
        .fallback = "10",
        .help = "The cost of hashing passwords, from 4 to 31; each step doubles the time. Any "
                "other value: 10.",
        .max = INT32_MAX,
        FIELD(bcrypt_cost),
    },
};

const struct option_group serve_security_options = GROUP("Security", security);
