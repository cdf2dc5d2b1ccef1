vigil_bench(watch)
