#include "cmd/serve/options/options_private.h"

static const struct option security[] = {
    FLAG_TEXT("cert-file", serve_options, cert_file, "",
              "The server certificate for https URLs, PEM. Its chain may follow in the same file."),
    FLAG_TEXT("key-file", serve_options, key_file, "", "The private key of --cert-file, PEM."),
    FLAG_BOOL("client-cert-auth", serve_options, client_cert_auth,
              "Accept only clients that present a certificate signed by --trusted-ca-file."),
    FLAG_TEXT("trusted-ca-file", serve_options, trusted_ca_file, "",
              "The certificate authorities that sign client certificates, PEM. Without "
              "--client-cert-auth it requires client certificates, too."),
    FLAG_TEXT("client-crl-file", serve_options, client_crl_file, "",
              "A list of revoked certificates, DER or PEM."),
    FLAG_LIST("client-cert-allowed-cn", serve_options, client_cert_allowed_cn, "",
              "Accept only client certificates with one of these common names. Empty: any."),
    FLAG_LIST("client-cert-allowed-hostname", serve_options, client_cert_allowed_hostname, "",
              "Accept only client certificates that are valid for one of these host names. "
              "Empty: any."),
    FLAG_BOOL("auto-tls", serve_options, auto_tls,
              "Without --cert-file: generate and use a self-signed certificate."),
    FLAG_INT("self-signed-cert-validity", serve_options, self_signed_cert_validity, "1",
             "The validity of a generated certificate, in years.", BETWEEN(1, 100)),
    FLAG_TEXT("tls-min-version", serve_options, tls_min_version, "TLS1.2",
              "The oldest TLS version to accept: TLS1.2 or TLS1.3. Empty: TLS1.2."),
    FLAG_TEXT("tls-max-version", serve_options, tls_max_version, "",
              "The newest TLS version to accept: TLS1.2 or TLS1.3. Empty: the newest known."),
    FLAG_LIST("cipher-suites", serve_options, cipher_suites, "",
              "Cipher suites for TLS 1.2, by their standard names. Empty: a list of safe suites."),
    FLAG_TEXT("auth-token", serve_options, auth_token, "simple",
              "The kind of token that users get when they log in: simple, or "
              "jwt,sign-method=RS256,priv-key=FILE,pub-key=FILE,ttl=5m."),
    FLAG_INT("auth-token-ttl", serve_options, auth_token_ttl_s, "300",
             "Seconds after which an unused simple token expires. 0: 300.", BETWEEN(0, INT32_MAX)),
    FLAG_INT("bcrypt-cost", serve_options, bcrypt_cost, "10",
             "The cost of hashing passwords, from 4 to 31; each step doubles the time. Any "
             "other value: 10.",
             BETWEEN(0, INT32_MAX)),
};

const struct option_group serve_security_options = GROUP("Security", security);
