// Nodes of a Kubernetes cluster for tests: `nodes KUBECONFIG COUNT DIRECTORY`.
//
// They take the kubelet's part for a real API server: they register, run the pods that are bound to
// them, and serve exec with the kubelet's own code. A container is the program in namespaces of its
// own (processes, mounts, host name) on this machine's files; its image is ignored. Every volume is
// DIRECTORY.
package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	streams "k8s.io/apimachinery/pkg/util/remotecommand"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	remote "k8s.io/client-go/tools/remotecommand"
	"k8s.io/kubelet/pkg/cri/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"
)

// a root of bind mounts, so that the volume's place need not exist on this machine
const container = `set -e
root=$(mktemp -d)
mount -t tmpfs pod $root
for one in /*; do
  if [ -L "$one" ]; then cp -P "$one" "$root$one"
  elif [ -d "$one" ]; then mkdir "$root$one"; mount --rbind "$one" "$root$one"; fi
done
mkdir -p "$root$MOUNT"
mount --bind "$VOLUME" "$root$MOUNT"
mount -t proc proc $root/proc
hostname "$POD"
exec chroot "$root" "$@"`

type node struct {
	api    *kubernetes.Clientset
	volume string
	port   int32
	mutex  sync.Mutex
	pods   map[types.UID]*exec.Cmd
	names  map[string]types.UID
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func main() {
	config, err := clientcmd.BuildConfigFromFlags("", os.Args[1])
	check(err)
	config.QPS, config.Burst = 1000, 1000
	api, err := kubernetes.NewForConfig(config)
	check(err)
	count, err := strconv.Atoi(os.Args[2])
	check(err)
	here := &node{api: api, volume: os.Args[3], pods: map[types.UID]*exec.Cmd{},
		names: map[string]types.UID{}}
	here.listen()
	for n := 1; n <= count; n++ {
		check(here.register(fmt.Sprintf("k%d", n)))
	}
	for {
		here.look()
		time.Sleep(200 * time.Millisecond)
	}
}

func (n *node) register(name string) error {
	ctx := context.Background()
	made, err := n.api.CoreV1().Nodes().Create(ctx, &v1.Node{ObjectMeta: meta.ObjectMeta{
		Name: name, Labels: map[string]string{"kubernetes.io/hostname": name}}}, meta.CreateOptions{})
	if err != nil {
		return err
	}
	room := v1.ResourceList{v1.ResourceCPU: resource.MustParse("64"),
		v1.ResourceMemory: resource.MustParse("64Gi"), v1.ResourcePods: resource.MustParse("100")}
	made.Status = v1.NodeStatus{Capacity: room, Allocatable: room,
		Conditions:      []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}},
		Addresses:       []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: "127.0.0.1"}},
		DaemonEndpoints: v1.NodeDaemonEndpoints{KubeletEndpoint: v1.DaemonEndpoint{Port: n.port}}}
	_, err = n.api.CoreV1().Nodes().UpdateStatus(ctx, made, meta.UpdateOptions{})
	return err
}

// look starts pods that were bound to a node, and ends those that were deleted.
func (n *node) look() {
	list, err := n.api.CoreV1().Pods("").List(context.Background(), meta.ListOptions{})
	if err != nil {
		log.Print(err)
		return
	}
	for at := range list.Items {
		pod := &list.Items[at]
		n.mutex.Lock()
		running, known := n.pods[pod.UID]
		n.mutex.Unlock()
		switch {
		case pod.Spec.NodeName == "":
		case !known && pod.DeletionTimestamp == nil && pod.Status.Phase == v1.PodPending:
			n.start(pod)
		case pod.DeletionTimestamp != nil && running != nil:
			n.mutex.Lock()
			n.pods[pod.UID] = nil
			n.mutex.Unlock()
			go n.end(pod, running)
		}
	}
}

func (n *node) start(pod *v1.Pod) {
	one := pod.Spec.Containers[0]
	// as the kubelet does: $$ becomes $
	words := []string{"--pid", "--fork", "--mount", "--uts", "--kill-child", "sh", "-c", container, "sh"}
	for _, word := range append(one.Command, one.Args...) {
		words = append(words, strings.ReplaceAll(word, "$$", "$"))
	}
	command := exec.Command("unshare", words...)
	command.Env = append(os.Environ(), "VOLUME="+n.volume, "POD="+pod.Name,
		"MOUNT="+one.VolumeMounts[0].MountPath)
	command.Stderr = os.Stderr
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := command.Start(); err != nil {
		log.Print(err)
		return
	}
	n.mutex.Lock()
	n.pods[pod.UID] = command
	n.names[pod.Namespace+"/"+pod.Name] = pod.UID
	n.mutex.Unlock()
	now := meta.Now()
	pod.Status = v1.PodStatus{Phase: v1.PodRunning, StartTime: &now, PodIP: "127.0.0.1",
		Conditions: []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue},
			{Type: v1.PodScheduled, Status: v1.ConditionTrue}},
		ContainerStatuses: []v1.ContainerStatus{{Name: one.Name, Ready: true,
			State: v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: now}}}}}
	_, err := n.api.CoreV1().Pods(pod.Namespace).UpdateStatus(context.Background(), pod,
		meta.UpdateOptions{})
	if err != nil {
		log.Print(err)
	}
}

// first is the container's first process, the child of unshare; 0 if there is none.
func first(command *exec.Cmd) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", command.Process.Pid,
		command.Process.Pid))
	if err != nil {
		return 0
	}
	found, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return found
}

func (n *node) end(pod *v1.Pod, command *exec.Cmd) {
	if pid := first(command); pid != 0 {
		_ = syscall.Kill(pid, syscall.SIGTERM)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	grace := int64(30)
	if pod.DeletionGracePeriodSeconds != nil {
		grace = *pod.DeletionGracePeriodSeconds
	}
	select {
	case <-ended:
	case <-time.After(time.Duration(grace) * time.Second):
		_ = command.Process.Kill()
		<-ended
	}
	now := int64(0)
	err := n.api.CoreV1().Pods(pod.Namespace).Delete(context.Background(), pod.Name,
		meta.DeleteOptions{GracePeriodSeconds: &now})
	if err != nil {
		log.Print(err)
	}
}

// ExecInContainer runs a command in a pod. As with containerd, it goes on when the client is gone:
// it sees the end of its input then.
func (n *node) ExecInContainer(_ context.Context, name string, uid types.UID, _ string, cmd []string,
	in io.Reader, out, err io.WriteCloser, _ bool, _ <-chan remote.TerminalSize,
	_ time.Duration) error {
	n.mutex.Lock()
	pod := n.pods[uid]
	n.mutex.Unlock()
	if pod == nil || first(pod) == 0 {
		return fmt.Errorf("the pod %s does not run", name)
	}
	words := append([]string{"-t", strconv.Itoa(first(pod)), "-m", "-p", "-u", "-r", "-w", "--"}, cmd...)
	command := exec.Command("nsenter", words...)
	into, _ := command.StdinPipe()
	from, _ := command.StdoutPipe()
	errors, _ := command.StderrPipe()
	if failure := command.Start(); failure != nil {
		return failure
	}
	if in != nil {
		go func() {
			_, _ = io.Copy(into, in)
			_ = into.Close()
		}()
	} else {
		_ = into.Close()
	}
	var both sync.WaitGroup
	pass := func(to io.Writer, source io.Reader) {
		defer both.Done()
		if to != nil {
			_, _ = io.Copy(to, source)
		}
		_, _ = io.Copy(io.Discard, source)
	}
	both.Add(2)
	go pass(out, from)
	go pass(err, errors)
	both.Wait()
	failure := command.Wait()
	if exit, is := failure.(*exec.ExitError); is {
		return utilexec.CodeExitError{Err: exit, Code: exit.ExitCode()}
	}
	return failure
}

func (n *node) serve(w http.ResponseWriter, request *http.Request) {
	parts := strings.Split(strings.Trim(request.URL.Path, "/"), "/")
	if len(parts) != 4 || parts[0] != "exec" {
		http.NotFound(w, request)
		return
	}
	options, err := remotecommand.NewOptions(request)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	n.mutex.Lock()
	uid := n.names[parts[1]+"/"+parts[2]]
	n.mutex.Unlock()
	remotecommand.ServeExec(w, request, n, parts[2], uid, parts[3], request.URL.Query()["command"],
		options, time.Hour, time.Minute, streams.SupportedStreamingProtocols)
}

// listen serves what a kubelet serves at a free port.
func (n *node) listen() {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(24 * time.Hour)}
	made, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	check(err)
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	n.port = int32(plain.Addr().(*net.TCPAddr).Port)
	// SPDY upgrades HTTP/1.1 connections
	secure := tls.NewListener(plain, &tls.Config{NextProtos: []string{"http/1.1"},
		Certificates: []tls.Certificate{{Certificate: [][]byte{made}, PrivateKey: key}}})
	go func() { check(http.Serve(secure, http.HandlerFunc(n.serve))) }()
}
