# Libraries that the memory sanitizer did not compile write memory that it takes for undefined. Programs of this build
# call them through tests/msan/LIBRARY.c, which checks what they are given and says what they have written. A library
# that has such a file is replaced by msan_LIBRARY, which vigil_layer looks for.
set(msan_lmdb mdb_env_create mdb_env_open mdb_env_get_fd mdb_txn_begin mdb_txn_commit mdb_txn_renew mdb_dbi_open
    mdb_cursor_open mdb_cursor_get mdb_cursor_put mdb_get mdb_put mdb_del)
set(msan_yaml yaml_parser_initialize yaml_parser_parse)
set(msan_z deflate inflate deflateInit2_ inflateInit2_)
set(msan_crypt crypt_rn crypt_gensalt_rn)
set(msan_crypto EVP_DigestUpdate EVP_DigestFinal_ex)
set(msan_nghttp2 nghttp2_hd_inflate_new nghttp2_hd_deflate_new nghttp2_hd_inflate_hd2 nghttp2_hd_deflate_hd
    nghttp2_session_callbacks_new nghttp2_session_callbacks_set_on_frame_recv_callback
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback nghttp2_session_server_new nghttp2_session_mem_recv
    nghttp2_session_mem_send)
set(msan_cmocka _cmocka_run_group_tests)
foreach(library lmdb yaml z crypt crypto nghttp2 cmocka)
    add_library(msan_${library} STATIC ${CMAKE_SOURCE_DIR}/tests/msan/${library}.c)
    target_link_libraries(msan_${library} PUBLIC ${library})
    list(TRANSFORM msan_${library} PREPEND "-Wl,--wrap=" OUTPUT_VARIABLE wraps)
    target_link_options(msan_${library} INTERFACE ${wraps})
endforeach()
