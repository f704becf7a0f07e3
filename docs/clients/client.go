package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
)

func env(name, otherwise string) string {
	if value, ok := os.LookupEnv(name); ok {
		return value
	}
	return otherwise
}

func say(allowed bool, remaining int) {
	fmt.Println(map[bool]string{true: "go", false: "wait"}[allowed], remaining)
}

func main() {
	// A Redis client does this and more: client.Do(ctx, "FG.LIMIT", "go:42", "2/60s").
	conn, err := net.DialTimeout("tcp", env("FLOWGATE_RESP", "127.0.0.1:7071"), time.Second)
	if err != nil {
		panic(err)
	}
	replies := bufio.NewReader(conn)
	for range [3]int{} {
		fmt.Fprint(conn, "FG.LIMIT go:42 2/60s\r\n")
		var elements, allowed, limit, remaining, retryMs, resetMs, delayMs int
		fmt.Fscanf(replies, "*%d\r\n:%d\r\n:%d\r\n:%d\r\n:%d\r\n:%d\r\n:%d\r\n$0\r\n\r\n$0\r\n\r\n",
			&elements, &allowed, &limit, &remaining, &retryMs, &resetMs, &delayMs)
		say(allowed == 1, remaining)
	}

	client := http.Client{Timeout: time.Second}
	body := strings.NewReader(`{"key":"go:42","limit":"2/60s"}`)
	answer, err := client.Post(env("FLOWGATE_SERVER", "http://127.0.0.1:7070")+"/v1/limit", "application/json", body)
	if err != nil {
		panic(err)
	}
	var decision struct {
		Allowed   bool
		Remaining int
	}
	json.NewDecoder(answer.Body).Decode(&decision)
	say(decision.Allowed, decision.Remaining)
}
