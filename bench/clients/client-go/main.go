// What client-go's informer costs a program. It does the work of ../libvigil_kube_bench.c and prints
// the same JSON object.
//
//	client_go_bench SERVER informer COUNT   until COUNT pods are in the store and in one handler
//	client_go_bench SERVER catchup COUNT    the same, then "ready"; after a number on the standard
//	                                        input, until so many changes have arrived
//	client_go_bench SERVER watches COUNT    idle watches
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

func check(err error) {
	if err != nil {
		log.Fatalf("client_go_bench: %v", err)
	}
}

func connect(server string) *kubernetes.Clientset {
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server, QPS: -1,
		ContentConfig: rest.ContentConfig{ContentType: "application/json"}})
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

type meter struct {
	cpu   float64
	began time.Time
}

func startMeter() meter { return meter{cpuSeconds(), time.Now()} }

func (m meter) report(count int, bytes func() float64) {
	cpu, seconds := cpuSeconds()-m.cpu, time.Since(m.began).Seconds()
	fmt.Printf("{\"count\": %d, \"cpu_us\": %.4f, \"seconds\": %.4f, \"bytes\": %.1f}\n",
		count, cpu/float64(count)*1e6, seconds, bytes())
}

// Counts changes, and says when a number of them has come.
type counter struct {
	seen, wanted atomic.Int64
	reached      chan struct{}
}

func newCounter(wanted int) *counter {
	c := &counter{reached: make(chan struct{}, 1)}
	c.wanted.Store(int64(wanted))
	return c
}

func (c *counter) note() {
	if c.seen.Add(1) == c.wanted.Load() {
		c.reached <- struct{}{}
	}
}

// Some of them may have come already.
func (c *counter) waitForMore(before, more int) {
	c.wanted.Store(int64(before + more))
	for c.seen.Load() < int64(before+more) {
		select {
		case <-c.reached:
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func startInformer(server string, c *counter) cache.SharedIndexInformer {
	factory := informers.NewSharedInformerFactory(connect(server), 0)
	informer := factory.Core().V1().Pods().Informer()
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { c.note() },
		UpdateFunc: func(any, any) { c.note() },
	})
	check(err)
	factory.Start(context.Background().Done())
	return informer
}

func runInformer(server string, count int) {
	c := newCounter(count)
	meter := startMeter()
	informer := startInformer(server, c)
	<-c.reached
	meter.report(count, residentBytes)
	runtime.KeepAlive(informer)
}

func runCatchUp(server string, count int) {
	c := newCounter(count)
	informer := startInformer(server, c)
	<-c.reached
	fmt.Println("ready")
	var changes int
	_, err := fmt.Scan(&changes)
	check(err)
	meter := startMeter()
	c.waitForMore(count, changes)
	meter.report(changes, residentBytes)
	runtime.KeepAlive(informer)
}

func runWatches(server string, count int) {
	client := connect(server)
	list, err := client.CoreV1().Pods(metav1.NamespaceAll).List(context.Background(), metav1.ListOptions{Limit: 1})
	check(err)
	before := residentBytes()
	meter := startMeter()
	type result interface{ Stop() }
	watches := make([]result, 0, count)
	for range count {
		w, err := client.CoreV1().Pods(metav1.NamespaceAll).Watch(context.Background(),
			metav1.ListOptions{ResourceVersion: list.ResourceVersion, FieldSelector: "metadata.name=nothing"})
		check(err)
		go func() {
			for event := range w.ResultChan() {
				if _, is := event.Object.(*corev1.Pod); is {
					log.Fatal("client_go_bench: an unexpected event")
				}
			}
		}()
		watches = append(watches, w)
	}
	meter.report(count, func() float64 { return (residentBytes() - before) / float64(count) })
	runtime.KeepAlive(watches)
}

func main() {
	if len(os.Args) != 4 {
		log.Fatal("usage: client_go_bench SERVER informer|catchup|watches COUNT")
	}
	count, err := strconv.Atoi(os.Args[3])
	check(err)
	switch server, mode := os.Args[1], os.Args[2]; mode {
	case "informer":
		runInformer(server, count)
	case "catchup":
		runCatchUp(server, count)
	case "watches":
		runWatches(server, count)
	default:
		log.Fatalf("client_go_bench: unknown work %q", mode)
	}
}
