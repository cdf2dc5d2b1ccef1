#include "cmd/serve_options_rows.h"

static const struct option security[] = {
    {
        .name = "cert-file",
        .kind = OPTION_TEXT,
        .fallback = "",
        .help = "The certificate shown to clients of https URLs, PEM; its chain may follow.",
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
        .help = "Take only clients with a certificate that --trusted-ca-file has signed.",
        FIELD(client_cert_auth),
    },
    {
        .name = "trusted-ca-file",
        .kind = OPTION_TEXT,
        .fallback = "",
        .help = "Certificates of the authorities that sign those of clients, PEM. Given alone, it "
                "asks for such certificates too.",
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
        .help = "Common names of which a client certificate must have one. Empty: any.",
        FIELD(client_cert_allowed_cn),
    },
    {
        .name = "client-cert-allowed-hostname",
        .kind = OPTION_LIST,
        .fallback = "",
        .help = "Host names of which a client certificate must be valid for one. Empty: any.",
        FIELD(client_cert_allowed_hostname),
    },
    {
        .name = "auto-tls",
        .kind = OPTION_BOOL,
        .fallback = "false",
        .help = "Without --cert-file: use a certificate made and signed by ourselves.",
        FIELD(auto_tls),
    },
    {
        .name = "self-signed-cert-validity",
        .kind = OPTION_INT,
        .fallback = "1",
        .help = "Years that such a certificate is valid.",
        .min = 1,
        .max = 100,
        FIELD(self_signed_cert_validity),
    },
    {
        .name = "tls-min-version",
        .kind = OPTION_TEXT,
        .fallback = "TLS1.2",
        .help = "The oldest version of TLS that is spoken: TLS1.2 or TLS1.3. Empty: TLS1.2.",
        FIELD(tls_min_version),
    },
    {
        .name = "tls-max-version",
        .kind = OPTION_TEXT,
        .fallback = "",
        .help =
            "The newest version of TLS that is spoken: TLS1.2 or TLS1.3. Empty: the newest known.",
        FIELD(tls_max_version),
    },
    {
        .name = "cipher-suites",
        .kind = OPTION_LIST,
        .fallback = "",
        .help = "Cipher suites up to TLS 1.2, by the names of the standard. Empty: those that are "
                "safe.",
        FIELD(cipher_suites),
    },
    {
        .name = "auth-token",
        .kind = OPTION_TEXT,
        .fallback = "simple",
        .help = "What users are given when they log in: simple, or "
                "jwt,sign-method=RS256,priv-key=FILE,pub-key=FILE,ttl=5m.",
        FIELD(auth_token),
    },
    {
        .name = "auth-token-ttl",
        .kind = OPTION_INT,
        .fallback = "300",
        .help = "Seconds that a simple token lives when it is not used. 0: 300.",
        .max = INT32_MAX,
        FIELD(auth_token_ttl_s),
    },
    {
        .name = "bcrypt-cost",
        .kind = OPTION_INT,
        .fallback = "10",
        .help = "How hard passwords are hashed, from 4 to 31: one more takes twice as long. "
                "Anything else: 10.",
        .max = INT32_MAX,
        FIELD(bcrypt_cost),
    },
};

const struct option_group serve_security_options = GROUP("Security", security);
