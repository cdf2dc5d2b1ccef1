// What etcd's clientv3 costs a program: CPU per call, per event and per watch. It does the work of
// ../libvigil_bench.c and prints the same JSON object.
//
//	clientv3_bench ENDPOINT put|get COUNT            100 in flight
//	clientv3_bench ENDPOINT events WATCHES COUNT
//	clientv3_bench ENDPOINT watches COUNT
//	clientv3_bench ENDPOINT resume COUNT
//	clientv3_bench ENDPOINT write COUNT              the puts whose events another process counts
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
)

const (
	inFlight  = 100
	keys      = 10000
	valueSize = 256
	eventSize = 300
	seen      = "seen" // the key that all watches see
)

// A connection that the program can break.
type breakable struct {
	mutex   sync.Mutex
	current *net.TCPConn
}

func (b *breakable) dial(ctx context.Context, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.current = conn.(*net.TCPConn)
	return conn, nil
}

// Ends both directions, as shutdown(2) does in libvigil_bench.
func (b *breakable) cut() {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	check(b.current.CloseRead())
	check(b.current.CloseWrite())
}

func check(err error) {
	if err != nil {
		log.Fatalf("clientv3_bench: %v", err)
	}
}

func connect(endpoint string, options ...grpc.DialOption) *clientv3.Client {
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{endpoint}, DialTimeout: time.Minute, DialOptions: options})
	check(err)
	_, err = client.Get(context.Background(), "warm")
	check(err)
	return client
}

func cpuSeconds() float64 {
	var usage syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	seconds := func(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }
	return seconds(usage.Utime) + seconds(usage.Stime)
}

// Of live memory: what the collector can free has been returned to the system.
func residentBytes() float64 {
	runtime.GC()
	debug.FreeOSMemory()
	text, err := os.ReadFile("/proc/self/statm")
	check(err)
	var pages, resident int64
	_, err = fmt.Sscan(string(text), &pages, &resident)
	check(err)
	return float64(resident) * float64(os.Getpagesize())
}

// The CPU and the time since it was made.
type meter struct {
	cpu   float64
	began time.Time
}

func startMeter() meter { return meter{cpuSeconds(), time.Now()} }

func (m meter) seconds() (cpu, elapsed float64) {
	return cpuSeconds() - m.cpu, time.Since(m.began).Seconds()
}

func report(count int, cpu, seconds, bytes float64) {
	fmt.Printf("{\"count\": %d, \"cpu_us\": %.4f, \"seconds\": %.4f, \"bytes\": %.1f}\n",
		count, cpu/float64(count)*1e6, seconds, bytes)
}

// Calls work with every number below count, on 100 goroutines.
func spread(count int, work func(i int)) {
	var next atomic.Int64
	var workers sync.WaitGroup
	for range inFlight {
		workers.Go(func() {
			for i := next.Add(1) - 1; i < int64(count); i = next.Add(1) - 1 {
				work(int(i))
			}
		})
	}
	workers.Wait()
}

func runCalls(endpoint string, puts bool, count int) {
	client := connect(endpoint)
	value := string(make([]byte, valueSize))
	meter := startMeter()
	spread(count, func(i int) {
		var err error
		key := fmt.Sprintf("bench/%d", i%keys)
		if puts {
			_, err = client.Put(context.Background(), key, value)
		} else {
			_, err = client.Get(context.Background(), key)
		}
		check(err)
	})
	cpu, seconds := meter.seconds()
	report(count, cpu, seconds, 0)
}

// Watches of one key on one stream, each with a goroutine that reads its events; received is added
// up to all of them.
func watchSeen(client *clientv3.Client, watches int, received *sync.WaitGroup) {
	spread(watches, func(int) {
		channel := client.Watch(context.Background(), seen)
		go func() {
			for response := range channel {
				check(response.Err())
				received.Add(-len(response.Events))
			}
		}()
	})
}

// The puts are made by another process, so that its CPU is not counted.
func startWriter(endpoint string, puts int) *exec.Cmd {
	writer := exec.Command(os.Args[0], endpoint, "write", strconv.Itoa(puts))
	writer.Stderr = os.Stderr
	check(writer.Start())
	return writer
}

func runWriter(endpoint string, puts int) {
	client := connect(endpoint)
	value := string(make([]byte, eventSize))
	for range puts {
		_, err := client.Put(context.Background(), seen, value)
		check(err)
	}
}

func runEvents(endpoint string, watches, count int) {
	var received sync.WaitGroup
	count = count / watches * watches
	received.Add(count)
	client := connect(endpoint)
	watchSeen(client, watches, &received)
	meter := startMeter()
	writer := startWriter(endpoint, count/watches)
	received.Wait()
	cpu, seconds := meter.seconds()
	report(count, cpu, seconds, 0)
	check(writer.Wait())
}

func runWatches(endpoint string, count int) {
	client := connect(endpoint)
	before := residentBytes()
	meter := startMeter()
	spread(count, func(i int) {
		client.Watch(context.Background(), fmt.Sprintf("watched/%08d", i))
	})
	cpu, seconds := meter.seconds()
	report(count, cpu, seconds, (residentBytes()-before)/float64(count))
}

// From the end of the connection until each watch has delivered a change that was made meanwhile.
func runResume(endpoint string, count int) {
	var connection breakable
	var received sync.WaitGroup
	received.Add(count)
	client := connect(endpoint, grpc.WithContextDialer(connection.dial))
	writer := connect(endpoint)
	watchSeen(client, count, &received)
	meter := startMeter()
	connection.cut()
	_, err := writer.Put(context.Background(), seen, string(make([]byte, eventSize)))
	check(err)
	received.Wait()
	cpu, seconds := meter.seconds()
	report(count, cpu, seconds, 0)
}

func main() {
	if len(os.Args) < 4 {
		log.Fatal("usage: clientv3_bench ENDPOINT put|get|events|watches|resume …")
	}
	var numbers []int
	for _, text := range os.Args[3:] {
		number, err := strconv.Atoi(text)
		check(err)
		numbers = append(numbers, number)
	}
	endpoint, mode := os.Args[1], os.Args[2]
	switch mode {
	case "put", "get":
		runCalls(endpoint, mode == "put", numbers[0])
	case "events":
		runEvents(endpoint, numbers[0], numbers[1])
	case "write":
		runWriter(endpoint, numbers[0])
	case "watches":
		runWatches(endpoint, numbers[0])
	case "resume":
		runResume(endpoint, numbers[0])
	default:
		log.Fatalf("clientv3_bench: unknown work %q", mode)
	}
}
