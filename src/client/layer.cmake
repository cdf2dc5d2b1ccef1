# The installed headers of the library.
target_include_directories(vigil_client PUBLIC ${CMAKE_SOURCE_DIR}/include)

# These tests make each of our allocations fail in turn. Their targets are created after this file is
# included.
foreach(test resolver connection connection_server watch_stream watch_memory object v2_poller v2_response)
    cmake_language(EVAL CODE "cmake_language(DEFER CALL target_link_options client_${test}_test PRIVATE
        -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=aligned_alloc,--wrap=strdup)")
endforeach()

# The same, and the loops of a client are observed (src/client/faulty_sim_test.h).
foreach(test client_sim client_protocol channel parts_sim)
    cmake_language(EVAL CODE "cmake_language(DEFER CALL target_link_options client_${test}_test PRIVATE
        -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=aligned_alloc,--wrap=strdup
        -Wl,--wrap=loop_turn,--wrap=loop_watch,--wrap=random_seed_system)")
endforeach()

# The stream below the watches is replaced by one that the test drives.
foreach(test watch_stream watch_memory)
    cmake_language(EVAL CODE "cmake_language(DEFER CALL target_link_options client_${test}_test PRIVATE
        -Wl,--wrap=client_stream_init,--wrap=client_stream_fini,--wrap=client_stream_want
        -Wl,--wrap=client_stream_give_up,--wrap=client_stream_send)")
endforeach()

vigil_corpus(client srv)
vigil_corpus(client v2_response)
