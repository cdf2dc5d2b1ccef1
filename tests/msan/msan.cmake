# Libraries that the memory sanitizer did not compile write memory that it takes for undefined. Programs of this build
# call them through tests/msan/LIBRARY.c, which checks what they are given and says what they have written. A library
# that has such a file is replaced by msan_LIBRARY, which vigil_layer looks for.
set(msan_lmdb mdb_env_create mdb_env_open mdb_env_get_fd mdb_txn_begin mdb_txn_commit mdb_txn_renew mdb_dbi_open
    mdb_cursor_open mdb_cursor_get mdb_cursor_put mdb_get mdb_put mdb_del)
set(msan_yaml yaml_parser_initialize yaml_parser_parse)
set(msan_z deflate inflate deflateInit2_ inflateInit2_)
set(msan_crypt crypt_rn crypt_gensalt_rn)
set(msan_crypto EVP_DigestInit_ex PEM_read_bio_PrivateKey PEM_read_bio_PUBKEY PEM_read_bio_X509 PEM_read_bio_X509_CRL
    X509_gmtime_adj ASN1_TIME_set ASN1_TIME_set_string X509_cmp_time PEM_read_X509 X509_NAME_add_entry_by_txt
    X509V3_EXT_conf_nid X509_check_host X509_check_ip_asc PEM_write_X509 PEM_write_X509_CRL PEM_write_PUBKEY
    PEM_write_PrivateKey i2d_X509_CRL_fp X509_set_pubkey X509_sign X509_CRL_sign X509_verify_cert X509_REQ_verify
    CRYPTO_set_mem_functions EVP_DigestUpdate EVP_DigestFinal_ex EVP_Digest HMAC EVP_DigestSignInit
    EVP_DigestVerifyInit EVP_DigestSign EVP_DigestVerify BN_bn2binpad i2d_PUBKEY i2d_ECDSA_SIG EVP_PKEY_Q_keygen
    RAND_bytes OPENSSL_cleanse BIO_read BIO_write PEM_read_bio d2i_X509 d2i_X509_REQ d2i_X509_CRL X509_digest
    X509_CRL_get0_by_serial ASN1_STRING_to_UTF8 ASN1_TIME_to_tm)
set(msan_ssl SSL_CTX_new SSL_CTX_set_cipher_list SSL_CTX_set_default_verify_paths SSL_CTX_use_certificate_chain_file
    SSL_CTX_use_PrivateKey_file SSL_CTX_set_alpn_protos SSL_set_alpn_protos SSL_do_handshake SSL_shutdown SSL_read_ex SSL_read SSL_write_ex SSL_write
    SSL_get0_alpn_selected SSL_get_servername SSL_select_next_proto SSL_CTX_set_cert_verify_callback
    SSL_CTX_set_alpn_select_cb SSL_CTX_set_info_callback BIO_meth_set_read BIO_meth_set_write BIO_meth_set_ctrl)
set(msan_nghttp2 nghttp2_hd_inflate_new nghttp2_hd_deflate_new nghttp2_hd_inflate_hd2 nghttp2_hd_deflate_hd
    nghttp2_session_callbacks_new nghttp2_session_callbacks_set_on_frame_recv_callback
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback nghttp2_session_server_new nghttp2_session_mem_recv
    nghttp2_session_mem_send)
set(msan_cmocka _cmocka_run_group_tests)
set(msan_c epoll_pwait2)
foreach(library lmdb yaml z crypt crypto ssl nghttp2 cmocka c)
    add_library(msan_${library} STATIC ${CMAKE_SOURCE_DIR}/tests/msan/${library}.c)
    target_link_libraries(msan_${library} PUBLIC ${library})
    list(TRANSFORM msan_${library} PREPEND "-Wl,--wrap=" OUTPUT_VARIABLE wraps)
    target_link_options(msan_${library} INTERFACE ${wraps})
endforeach()
link_libraries(msan_c) # every program uses the C library
