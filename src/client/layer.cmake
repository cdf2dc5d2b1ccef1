# The installed headers of the library.
target_include_directories(vigil_client PUBLIC ${CMAKE_SOURCE_DIR}/include)

vigil_failing_memory(client_names_resolver_test client_connect_connection_test client_connect_connection_server_test
                     client_connect_tunnel_test
                     client_watch_watch_stream_test client_watch_watch_memory_test client_watch_watch_queue_test
                     client_watch_object_test client_v2_v2_poller_test client_v2_v2_response_test
                     client_v2_v2_watch_test)

# The same, and the loops of a client or a pool are observed (src/client/sim/faulty_sim_test.h).
foreach(test http_http_pool http_http_pool_faults http_http_pool_hostile http_http_pool_stream http_pool_route
        sim_client_sim sim_client_protocol sim_channel sim_parts_sim sim_object_watch_sim)
    vigil_failing_memory(client_${test}_test)
    cmake_language(EVAL CODE "cmake_language(DEFER CALL target_link_options client_${test}_test PRIVATE
        -Wl,--wrap=loop_turn,--wrap=loop_watch,--wrap=random_seed_system)")
endforeach()

# The stream below the watches is replaced by one that the test drives, and the test says which
# version the server has.
foreach(test watch_watch_stream watch_watch_memory watch_watch_queue)
    cmake_language(EVAL CODE "cmake_language(DEFER CALL target_link_options client_${test}_test PRIVATE
        -Wl,--wrap=client_stream_init,--wrap=client_stream_fini,--wrap=client_stream_want
        -Wl,--wrap=client_stream_give_up,--wrap=client_stream_send
        -Wl,--wrap=server_inquiry_begin,--wrap=server_inquiry_end)")
endforeach()

# Names come from a table.
cmake_language(DEFER CALL target_link_options client_v2_v2_poller_test PRIVATE -Wl,--wrap=resolver_new)

# Each system call fails in turn.
cmake_language(DEFER CALL target_link_options client_sim_client_system_test PRIVATE
    -Wl,--wrap=epoll_create1,--wrap=epoll_ctl,--wrap=eventfd,--wrap=pthread_create
    -Wl,--wrap=socket,--wrap=connect,--wrap=getsockopt,--wrap=recv,--wrap=send)

# What a stream asks of its channel is counted.
cmake_language(DEFER CALL target_link_options client_call_stream_test PRIVATE
    -Wl,--wrap=channel_avoid,--wrap=channel_renew_token,--wrap=channel_has_token)

vigil_corpus(client srv)
vigil_corpus(client v2_response)
